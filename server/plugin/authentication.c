/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A CONNECT with the store's client id by another user would take over the store's session: the
 * plugin refuses it.
 *
 * mosquitto 2.0 calls the callbacks in the order of their registration, before its own check of
 * password_file, and takes the first result other than DEFER. If all defer, it refuses a client
 * with a user name. On a broker without authentication the plugin's callback would therefore refuse
 * all user names. So the plugin registers it only if plugin_opt_statestored_username is set,
 * because then the broker authenticates.
 *
 * mosquitto does not call the callbacks on listeners with use_identity_as_username or
 * use_subject_as_username. WELCOME tells the store whether the plugin has checked its CONNECT
 * (struct handshake_welcome).
 *
 * For enhanced authentication mosquitto calls other callbacks, and refuses the client if all defer.
 * The store does not use enhanced authentication, so the plugin refuses the store's client id to
 * every client that uses it.
 */

#include "base/array.h"
#include "base/log.h"
#include "plugin/internal.h"

static bool is_same_name(const char *text, const char *other) {
        return text && other && strcmp(text, other) == 0;
}

/*
 * Two client ids are the store's: that of the last HELLO, and that of the options (or the default
 * if they have none).
 */
static bool is_store_client_id(const struct plugin_load *load, const char *client_id) {
        if (is_same_name(client_id, load->plugin->store_client_id))
                return true;
        return is_same_name(client_id, load->client_id ? load->client_id : COMPANION_CLIENT_ID_DEFAULT);
}

static int refuse_connect(const char *client_id, const char *username) {
        mosquitto_log_printf(
                MOSQ_LOG_WARNING,
                "statestore: CONNECT refused: the client has the store's client id, but not its user name: "
                "client_id=%s username=%s",
                LOG_TEXT(slice_from_string(client_id)), LOG_TEXT(slice_from_string(username)));
        return MOSQ_ERR_AUTH;
}

/*
 * Return the index of the client in checked_store_clients, or n_checked_store_clients if it is not
 * there.
 */
static size_t find_checked(const struct plugin *plugin, const struct mosquitto *client) {
        size_t i = 0;

        while (i < plugin->n_checked_store_clients && plugin->checked_store_clients[i] != client)
                i++;
        return i;
}

static int add_checked(struct plugin *plugin, const struct mosquitto *client) {
        int r;

        if (authentication_has_checked(plugin, client))
                return 0;
        r = array_reserve((void **)&plugin->checked_store_clients, &plugin->checked_store_clients_capacity,
                          plugin->n_checked_store_clients + 1, sizeof(*plugin->checked_store_clients));
        if (r < 0)
                return r;

        plugin->checked_store_clients[plugin->n_checked_store_clients++] = client;
        return 0;
}

bool authentication_has_checked(const struct plugin *plugin, const struct mosquitto *client) {
        return find_checked(plugin, client) < plugin->n_checked_store_clients;
}

void authentication_forget(struct plugin *plugin, const struct mosquitto *client) {
        size_t i = find_checked(plugin, client);

        if (i < plugin->n_checked_store_clients)
                plugin->checked_store_clients[i] =
                        plugin->checked_store_clients[--plugin->n_checked_store_clients];
}

int authentication_on_basic(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_basic_auth *connect = event_data;
        const struct plugin_load *load = userdata;
        const char *client_id = mosquitto_client_id(connect->client);

        (void)event;
        requests_drop_staged(load->plugin);
        if (is_same_name(connect->username, load->username)) {
                if (add_checked(load->plugin, connect->client) < 0)
                        return MOSQ_ERR_NOMEM;
        } else if (is_store_client_id(load, client_id)) {
                return refuse_connect(client_id, connect->username);
        }
        return broker_no_decision();
}

int authentication_on_enhanced(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_extended_auth *connect = event_data;
        const struct plugin_load *load = userdata;
        const char *client_id = mosquitto_client_id(connect->client);

        (void)event;
        requests_drop_staged(load->plugin);
        if (is_store_client_id(load, client_id))
                return refuse_connect(client_id, mosquitto_client_username(connect->client));
        return broker_no_decision();
}
