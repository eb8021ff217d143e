/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A CONNECT with the store's client id by another user would take over the store's session: the plugin refuses it.
 *
 * mosquitto 2.0 calls the callbacks in the order in which they registered, before its own check of password_file, until
 * one of them does not return DEFER. If all defer, a client with a user name is refused. So the plugin takes part only
 * where plugin_opt_statestored_username says that the broker authenticates. mosquitto does not call the callbacks on
 * listeners with use_identity_as_username or use_subject_as_username, nor with enhanced authentication: welcome says so,
 * and the store chooses a client id that cannot be guessed.
 */

#include "plugin/internal.h"

static bool is_same(const char *text, const char *other) {
        return text && other && strcmp(text, other) == 0;
}

/* The store's client id is the one of the last hello, or the one in the options, or the default. */
static bool is_store_client_id(const struct guard *guard, const char *client_id) {
        if (is_same(client_id, guard->plugin->peer_id))
                return true;
        return is_same(client_id, guard->client_id ? guard->client_id : COMPANION_CLIENT_ID_DEFAULT);
}

static int on_basic_auth(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_basic_auth *connect = event_data;
        const struct guard *guard = userdata;

        (void)event;
        if (is_same(connect->username, guard->username)) {
                guard->plugin->guarded_client = connect->client;
        } else if (is_store_client_id(guard, mosquitto_client_id(connect->client))) {
                mosquitto_log_printf(
                        MOSQ_LOG_WARNING,
                        "statestore: refused a client with the store's client id and another user");
                return MOSQ_ERR_AUTH;
        }
        return broker_not_my_business();
}

int authentication_start(struct guard *guard) {
        if (!guard->username)
                return 0;
        return broker_error(
                mosquitto_callback_register(guard->id, MOSQ_EVT_BASIC_AUTH, on_basic_auth, NULL, guard));
}

void authentication_stop(struct guard *guard) {
        mosquitto_callback_unregister(guard->id, MOSQ_EVT_BASIC_AUTH, on_basic_auth, NULL);
}
