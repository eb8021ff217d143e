/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <sodium.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/internal.h"

/*
 * Kick the tracked clients, except the sender of HELLO: the broker is processing its packet.
 * The store's new instance does not know these connections, so no DISCONNECTED is sent.
 */
static int kick_tracked(struct plugin *plugin, const struct mosquitto *sender) {
        CLEANUP(buf_deinit) struct buf numbers = { 0 };
        const uint64_t *number;

        connections_append_tracked(&plugin->connections, &numbers);
        if (buf_failed(&numbers))
                return -ENOMEM;

        for (struct connection *c = plugin->connections.by_client; c; c = c->by_client.next)
                c->is_tracked = false;

        number = (const uint64_t *)numbers.data;
        for (size_t i = 0; i < numbers.length / sizeof(*number); i++) {
                const struct connection *connection;

                /*
                 * Look up each number: the kick publishes the client's will, which can end other
                 * connections.
                 */
                connection = connections_find(&plugin->connections, number[i]);
                if (connection && connection->client != sender)
                        mosquitto_kick_client_by_clientid(connection->client_id, true);
        }
        return 0;
}

static int read_hello(struct hello *hello, const struct plugin *plugin,
                      const struct mosquitto_evt_control *message) {
        int r;

        r = companion_hello_read((struct slice){ message->payload, message->payloadlen }, &hello->payload);
        if (r < 0)
                return r;

        hello->is_connect_checked = authentication_has_checked(plugin, message->client);
        return properties_read_correlation(message->properties, &hello->run, &hello->number);
}

/*
 * Kick a former store with another client id, so that at most one store serves. A former
 * store with the same client id was disconnected by the broker.
 */
static int set_store_client_id(struct plugin *plugin, const char *client_id) {
        char *copy = strdup(client_id);

        if (!copy)
                return -ENOMEM;
        if (plugin->store_client_id && strcmp(plugin->store_client_id, copy) != 0)
                mosquitto_kick_client_by_clientid(plugin->store_client_id, true);
        free(plugin->store_client_id);
        plugin->store_client_id = copy;
        return 0;
}

static int set_instance(struct plugin *plugin, struct slice instance, const struct mosquitto *sender) {
        int r;

        if (slice_equal(instance, (struct slice){ plugin->instance, plugin->instance_length }))
                return 0;
        r = kick_tracked(plugin, sender);
        if (r < 0)
                return r;

        deliver_reset(plugin);
        memcpy(plugin->instance, instance.data, instance.length);
        plugin->instance_length = instance.length;
        return 0;
}

/* Send TAKEOVER if a run returns after another run: two stores take over each other's session. */
static int set_run(struct plugin *plugin, uint64_t run) {
        bool has_returned = run == plugin->former_run;

        if (run == plugin->run)
                return 0;

        plugin->former_run = plugin->run;
        plugin->run = run;
        if (!has_returned)
                return 0;
        mosquitto_log_printf(MOSQ_LOG_WARNING,
                             "statestore: two statestored take over each other's session: stop one of them");
        return send_takeover(plugin);
}

/*
 * After a restart of the broker, the plugin knows only the client id of the options, or the
 * default, until HELLO arrives. If the store has another client id that can be guessed, warn that
 * the plugin does not protect it in that time.
 */
static void check_client_id(const struct plugin *plugin, const struct hello *hello) {
        struct slice client_id = slice_from_string(plugin->store_client_id);

        if (!hello->is_connect_checked || plugin->requires_client_id ||
            slice_equal(client_id, SLICE_LITERAL(COMPANION_CLIENT_ID_DEFAULT)) ||
            companion_client_id_is_random(client_id))
                return;
        mosquitto_log_printf(
                MOSQ_LOG_WARNING,
                "statestore: after a restart of the broker, another user can take the store's client id "
                "until the store connects; set plugin_opt_statestored_client_id to it: client_id=%s",
                LOG_TEXT(client_id));
}

static int handle_hello(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct hello hello;
        int r;

        r = read_hello(&hello, plugin, message);
        if (r < 0)
                return r;
        r = set_store_client_id(plugin, mosquitto_client_id(message->client));
        if (r < 0)
                return r;
        check_client_id(plugin, &hello);
        r = set_instance(plugin, hello.payload.instance_id, message->client);
        if (r < 0)
                return r;
        slow_watchers_check_log(plugin);
        disconnected_clear(&plugin->disconnected); /* WELCOME does not list these connections */
        r = set_run(plugin, hello.run);
        if (r == 0)
                r = send_welcome(plugin, &hello);
        if (r == 0)
                plugin->hello_client = message->client;
        sodium_memzero(hello.payload.key, sizeof(hello.payload.key));
        return r;
}

/*
 * Process TRACK, UNTRACK or KICK, whose payload is the number of a connection. The connection may
 * have ended.
 */
static int handle_connection(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct slice payload = { message->payload, message->payloadlen };
        bool is_track = strcmp(message->topic, COMPANION_TRACK) == 0,
             is_untrack = strcmp(message->topic, COMPANION_UNTRACK) == 0;
        struct connection *connection;
        uint64_t number;

        if (parse_uint64(payload, &number) < 0)
                return -EINVAL;

        connection = connections_find(&plugin->connections, number);
        if (is_untrack)
                disconnected_acknowledge(&plugin->disconnected, number);
        if (!connection)
                return is_track ? disconnected_report(plugin, number) : 0;

        if (is_track)
                connections_track(&plugin->connections, connection);
        else if (is_untrack)
                connection->is_tracked = false;
        else if (connection->client != message->client)
                mosquitto_kick_client_by_clientid(connection->client_id, true);
        return 0;
}

static const struct message_handler {
        const char *topic;
        int (*handle)(struct plugin *plugin, const struct mosquitto_evt_control *message);
        bool accepts_new_sender; /* false: only the sender of the last HELLO */
} handlers[] = {
        { COMPANION_HELLO, handle_hello, true },         { COMPANION_TRACK, handle_connection, false },
        { COMPANION_UNTRACK, handle_connection, false }, { COMPANION_DELIVER, deliver_queue, false },
        { COMPANION_KICK, handle_connection, false },
};

#define N_HANDLERS ARRAY_LENGTH(handlers)

static bool has_store_client_id(const struct plugin *plugin, const struct mosquitto *client) {
        const char *client_id = mosquitto_client_id(client);

        return client_id && plugin->store_client_id && strcmp(client_id, plugin->store_client_id) == 0;
}

/*
 * The broker calls the access checks for a client's message, but not for a bridge's: check each
 * sender here.
 */
static bool is_accepted(const struct message_handler *handler, const struct plugin_load *load,
                        const struct mosquitto *sender) {
        if (!mosquitto_client_id(sender) || !acl_is_store(load, sender))
                return false;
        return handler->accepts_new_sender || has_store_client_id(load->plugin, sender);
}

/*
 * Ignore a malformed message: the broker closes the connection on an error, so a store of another
 * version could not connect. Return an error if memory is short: the store then connects again, and
 * WELCOME tells it what the plugin has.
 */
static int on_control(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_control *message = event_data;
        const struct plugin_load *load = userdata;

        (void)event;
        for (size_t i = 0; i < N_HANDLERS; i++) {
                if (strcmp(handlers[i].topic, message->topic) != 0 ||
                    !is_accepted(&handlers[i], load, message->client))
                        continue;

                switch (handlers[i].handle(load->plugin, message)) {
                case 0:
                        break;
                case -ENOMEM:
                        if (has_store_client_id(load->plugin, message->client))
                                load->plugin->failed_client = message->client;
                        return MOSQ_ERR_NOMEM;
                default:
                        mosquitto_log_printf(MOSQ_LOG_WARNING,
                                             "statestore: malformed message ignored: topic=%s",
                                             handlers[i].topic);
                }
        }
        return MOSQ_ERR_SUCCESS;
}

int from_store_register(struct plugin_load *load) {
        for (size_t i = 0; i < N_HANDLERS; i++) {
                int result;

                /*
                 * 2.1 accepts one callback for each control topic, not one for each listener: the
                 * first load has it.
                 */
                result = mosquitto_callback_register(load->id, MOSQ_EVT_CONTROL, on_control,
                                                     handlers[i].topic, load);
                if (result != MOSQ_ERR_SUCCESS && result != MOSQ_ERR_ALREADY_EXISTS)
                        return broker_errno(result);
        }
        return 0;
}

void from_store_unregister(struct plugin_load *load) {
        for (size_t i = 0; i < N_HANDLERS; i++)
                mosquitto_callback_unregister(load->id, MOSQ_EVT_CONTROL, on_control, handlers[i].topic);
}

void from_store_kick_failed(struct plugin *plugin) {
        if (!plugin->failed_client)
                return;
        plugin->failed_client = NULL;
        mosquitto_kick_client_by_clientid(plugin->store_client_id, true);
}

void from_store_forget(struct plugin *plugin, const struct mosquitto *client) {
        if (plugin->failed_client == client)
                plugin->failed_client = NULL;
}
