/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "base/cleanup.h"
#include "plugin/internal.h"

#define EXPORT __attribute__((visibility("default")))

/* All that the broker loads us for work on the same connections. */
static struct plugin the_plugin;

static int on_message(int event, void *event_data, void *userdata) {
        struct mosquitto_evt_message *message = event_data;
        const struct guard *guard = userdata;

        (void)event;
        if (strcmp(message->topic, TOPIC_INVOKE) == 0)
                return identity_add(guard->plugin, message);
        return guard_may_publish(guard, message->client, message->topic) ? MOSQ_ERR_SUCCESS
                                                                         : MOSQ_ERR_ACL_DENIED;
}

/* The client's id may be gone by now. */
static int on_end(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_disconnect *end = event_data;
        const struct guard *guard = userdata;
        struct plugin *plugin = guard->plugin;

        (void)event;
        if (end->client == plugin->guarded_client)
                plugin->guarded_client = NULL; /* its memory may become another client's */
        presence_end(plugin, connections_find_client(&plugin->connections, end->client));
        return MOSQ_ERR_SUCCESS;
}

static int on_tick(int event, void *event_data, void *userdata) {
        struct guard *guard = userdata;

        (void)event;
        (void)event_data;
        guard->plugin->ticks = true;
        deliver_hand_over(guard->plugin);
        guard_look_again(guard); /* another plugin may have kept the news of a reload from us */
        return MOSQ_ERR_SUCCESS;
}

static int on_reload(int event, void *event_data, void *userdata) {
        (void)event;
        (void)event_data;
        guard_look_again(userdata);
        return broker_reloaded();
}

static const struct {
        int event;
        MOSQ_FUNC_generic_callback callback;
} events[] = {
        { MOSQ_EVT_MESSAGE, on_message },
        { MOSQ_EVT_TICK, on_tick },
        { MOSQ_EVT_RELOAD, on_reload },
};

#define N_EVENTS (sizeof(events) / sizeof(events[0]))

static int start(struct guard *guard) {
        int r;

        r = broker_on_end(guard->id, on_end, guard);
        if (r < 0)
                return r;
        for (size_t i = 0; i < N_EVENTS; i++) {
                r = broker_error(mosquitto_callback_register(guard->id, events[i].event, events[i].callback,
                                                             NULL, guard));
                if (r < 0)
                        return r;
        }

        r = guard_start(guard);
        if (r < 0)
                return r;
        r = authentication_start(guard);
        return r < 0 ? r : control_start(guard);
}

static void stop(struct guard *guard) {
        control_stop(guard);
        authentication_stop(guard);
        guard_stop(guard);
        for (size_t i = 0; i < N_EVENTS; i++)
                mosquitto_callback_unregister(guard->id, events[i].event, events[i].callback, NULL);
        broker_on_end_stop(guard->id, on_end);
}

static int plugin_init(struct plugin *plugin) {
        int r;

        r = companion_mac_init();
        if (r < 0)
                return r;

        *plugin = (struct plugin){ .end_of_deliveries = &plugin->first_delivery };
        randombytes_buf(plugin->mac_key, sizeof(plugin->mac_key));
        connections_init(&plugin->connections);
        return 0;
}

static void plugin_deinit(struct plugin *plugin) {
        deliver_drop_all(plugin);
        connections_deinit(&plugin->connections);
        free(plugin->peer_id);
        sodium_memzero(plugin, sizeof(*plugin));
}

static struct guard *guard_free(struct guard *guard) {
        if (!guard)
                return NULL;

        stop(guard);
        if (--guard->plugin->n_guards == 0)
                plugin_deinit(guard->plugin);
        free(guard->username);
        free(guard->client_id);
        free(guard);
        return NULL;
}

static void cleanup_guard(struct guard **guard) {
        guard_free(*guard);
}

static int guard_new(struct guard **ret_guard, mosquitto_plugin_id_t *id) {
        CLEANUP(cleanup_free) struct guard *guard = NULL;
        int r;

        guard = calloc(1, sizeof(*guard));
        if (!guard)
                return -ENOMEM;

        if (the_plugin.n_guards == 0) {
                r = plugin_init(&the_plugin);
                if (r < 0)
                        return r;
        }
        the_plugin.n_guards++;

        guard->plugin = &the_plugin;
        guard->id = id;
        *ret_guard = take_ptr(&guard);
        return 0;
}

static int set_text(char **option, const char *value) {
        char *text;

        if (!value || value[0] == '\0')
                return -EINVAL;
        text = strdup(value);
        if (!text)
                return -ENOMEM;

        free(*option);
        *option = text;
        return 0;
}

static int set_undecided(struct guard *guard, const char *value) {
        if (value && strcmp(value, "allow") == 0)
                guard->undecided = UNDECIDED_ALLOW;
        else if (value && strcmp(value, "deny") == 0)
                guard->undecided = UNDECIDED_DENY;
        else
                return -EINVAL;
        return 0;
}

static int set_option(struct guard *guard, const struct mosquitto_opt *option) {
        if (strcmp(option->key, "statestored_username") == 0)
                return set_text(&guard->username, option->value);
        if (strcmp(option->key, "statestored_client_id") == 0)
                return set_text(&guard->client_id, option->value);
        if (strcmp(option->key, "undecided") == 0)
                return set_undecided(guard, option->value);
        return -EINVAL;
}

/* Refuse an unknown option: a misspelt one would leave the topics unprotected. The broker does not start then. */
static int set_options(struct guard *guard, const struct mosquitto_opt *options, int n_options) {
        int r;

        for (int i = 0; i < n_options; i++) {
                r = set_option(guard, &options[i]);
                if (r == -EINVAL)
                        mosquitto_log_printf(MOSQ_LOG_ERR, "statestore: no such option: plugin_opt_%s %s",
                                             options[i].key, options[i].value ? options[i].value : "");
                if (r < 0)
                        return r;
        }
        r = guard->username || guard->client_id ? 0
                                                : set_text(&guard->client_id, COMPANION_CLIENT_ID_DEFAULT);
        if (r < 0)
                return r;
        if (guard->client_id)
                guard->plugin->is_client_id_fixed = true;
        return 0;
}

static void log_guarded(const struct guard *guard) {
        const char *username = guard->username, *client_id = guard->client_id;

        mosquitto_log_printf(MOSQ_LOG_NOTICE,
                             "statestore: plugin %s guards %s and $CONTROL/statestore for %s%s%s%s%s",
                             STATESTORED_VERSION, TOPIC_SERVICE, username ? "username " : "",
                             username ? username : "", username && client_id ? ", " : "",
                             client_id ? "client id " : "", client_id ? client_id : "");
}

static int load(struct guard **ret_guard, mosquitto_plugin_id_t *id, const struct mosquitto_opt *options,
                int n_options) {
        CLEANUP(cleanup_guard) struct guard *guard = NULL;
        int r;

        r = guard_new(&guard, id);
        if (r < 0)
                return r;
        r = set_options(guard, options, n_options);
        if (r < 0)
                return r;
        r = start(guard);
        if (r < 0)
                return r;
        r = tell_banner();
        if (r < 0)
                return r;

        log_guarded(guard);
        *ret_guard = take_ptr(&guard);
        return 0;
}

EXPORT int mosquitto_plugin_version(int n_versions, const int *versions) {
        for (int i = 0; i < n_versions; i++)
                if (versions[i] == MOSQ_PLUGIN_VERSION)
                        return MOSQ_PLUGIN_VERSION;
        return -1;
}

EXPORT int mosquitto_plugin_init(mosquitto_plugin_id_t *id, void **ret_userdata,
                                 struct mosquitto_opt *options, int n_options) {
        struct guard *guard;

        switch (load(&guard, id, options, n_options)) {
        case 0:
                *ret_userdata = guard;
                return MOSQ_ERR_SUCCESS;
        case -ENOMEM:
                return MOSQ_ERR_NOMEM;
        default:
                return MOSQ_ERR_INVAL;
        }
}

EXPORT int mosquitto_plugin_cleanup(void *userdata, struct mosquitto_opt *options, int n_options) {
        (void)options;
        (void)n_options;
        guard_free(userdata);
        return MOSQ_ERR_SUCCESS;
}
