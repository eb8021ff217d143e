/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/internal.h"

/*
 * Disconnect the clients that were tracked under an earlier instance id: their registrations are lost. The store is not
 * told of these ends, because it does not know the connections. The client that sent hello stays: the broker is in the
 * middle of its packet.
 */
static int disconnect_tracked(struct plugin *plugin, const struct mosquitto *speaker) {
        CLEANUP(buf_deinit) struct buf numbers = { 0 };
        const uint64_t *number;

        for (struct connection *c = plugin->connections.by_client; c; c = c->by_client.next)
                if (c->is_tracked && c->client != speaker)
                        buf_append(&numbers, &c->number, sizeof(c->number));
        if (buf_failed(&numbers))
                return -ENOMEM;

        for (struct connection *c = plugin->connections.by_client; c; c = c->by_client.next)
                c->is_tracked = false;

        number = (const uint64_t *)numbers.data;
        for (size_t i = 0; i < numbers.length / sizeof(*number); i++) {
                const struct connection *connection;

                /* Find each one again: the will of a disconnected client can end other connections. */
                connection = connections_find_number(&plugin->connections, number[i]);
                if (connection)
                        mosquitto_kick_client_by_clientid(connection->client_id, true);
        }
        return 0;
}

/* A hello that is sent again is of the present run, and changes nothing. */
static int take_up_run(struct plugin *plugin, uint64_t run, uint64_t sequence) {
        bool is_back = run == plugin->former_run;

        if (run == plugin->run)
                return 0;

        plugin->former_run = plugin->run;
        plugin->run = run;
        plugin->last_sequence = sequence;
        if (!is_back)
                return 0;
        mosquitto_log_printf(MOSQ_LOG_WARNING, "statestore: two statestored take over each other's session");
        return tell_takeover(plugin);
}

static int hello_read(struct hello *hello, const struct plugin *plugin,
                      const struct mosquitto_evt_control *message) {
        const uint8_t *payload = message->payload;

        if (message->payloadlen <= COMPANION_HELLO_KEY_SIZE ||
            message->payloadlen > COMPANION_HELLO_KEY_SIZE + COMPANION_INSTANCE_MAX)
                return -EINVAL;

        memcpy(hello->key, payload, sizeof(hello->key));
        hello->instance =
                (struct slice){ payload + sizeof(hello->key), message->payloadlen - sizeof(hello->key) };
        hello->is_guarded = message->client == plugin->guarded_client;
        return property_pair(message->properties, &hello->run, &hello->sequence);
}

/*
 * Disconnect a store with another client id, so that at most one store serves: stores with one client id take over each
 * other's session, and this makes the same of stores with different ones.
 */
static int set_peer(struct plugin *plugin, const struct mosquitto *client) {
        char *peer_id = strdup(mosquitto_client_id(client));

        if (!peer_id)
                return -ENOMEM;
        if (plugin->peer_id && strcmp(plugin->peer_id, peer_id) != 0)
                mosquitto_kick_client_by_clientid(plugin->peer_id, true);
        free(plugin->peer_id);
        plugin->peer_id = peer_id;
        return 0;
}

static int take_up_instance(struct plugin *plugin, struct slice instance, const struct mosquitto *speaker) {
        int r;

        if (slice_equal(instance, (struct slice){ plugin->instance, plugin->instance_length }))
                return 0;
        r = disconnect_tracked(plugin, speaker);
        if (r < 0)
                return r;

        memcpy(plugin->instance, instance.data, instance.length);
        plugin->instance_length = instance.length;
        return 0;
}

static int take_hello(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct hello hello;
        int r;

        r = hello_read(&hello, plugin, message);
        if (r < 0)
                return r;
        r = set_peer(plugin, message->client);
        if (r < 0)
                return r;
        r = take_up_instance(plugin, hello.instance, message->client);
        if (r < 0)
                return r;
        r = take_up_run(plugin, hello.run, hello.sequence);
        if (r == 0)
                r = plugin_send_welcome(plugin, &hello);
        sodium_memzero(hello.key, sizeof(hello.key));
        return r;
}

/* *ret_connection becomes NULL where none has this number. -EINVAL for what is no number. */
static int find(const struct plugin *plugin, const struct mosquitto_evt_control *message,
                struct connection **ret_connection) {
        struct slice payload = { message->payload, message->payloadlen };
        uint64_t number;
        int r;

        r = parse_uint64(payload, &number);
        if (r < 0)
                return -EINVAL;

        *ret_connection = connections_find_number(&plugin->connections, number);
        return 0;
}

static int track(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct connection *connection;
        int r;

        r = find(plugin, message, &connection);
        if (r < 0)
                return r;
        if (!connection)
                return tell_disconnected(plugin, (struct slice){ message->payload, message->payloadlen });

        connection->is_tracked = true;
        return 0;
}

static int untrack(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct connection *connection;
        int r;

        r = find(plugin, message, &connection);
        if (r < 0)
                return r;
        if (connection)
                connection->is_tracked = false;
        return 0;
}

static int kick(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct connection *connection;
        int r;

        r = find(plugin, message, &connection);
        if (r < 0)
                return r;
        if (connection && connection->client != message->client)
                mosquitto_kick_client_by_clientid(connection->client_id, true);
        return 0;
}

static const struct control {
        const char *topic;
        int (*handle)(struct plugin *plugin, const struct mosquitto_evt_control *message);
        bool is_first; /* may be said by another one than who spoke last */
} controls[] = {
        { COMPANION_HELLO, take_hello, true }, { COMPANION_TRACK, track, false },
        { COMPANION_UNTRACK, untrack, false }, { COMPANION_DELIVER, deliver_take, false },
        { COMPANION_KICK, kick, false },
};

#define N_CONTROLS (sizeof(controls) / sizeof(controls[0]))

/* The access checks have been here before, unless it came over a bridge. */
static bool is_heard(const struct guard *guard, const struct control *control,
                     const struct mosquitto *client) {
        const char *client_id = mosquitto_client_id(client), *peer_id = guard->plugin->peer_id;

        if (!client_id || !guard_is_statestored(guard, client))
                return false;
        return control->is_first || (peer_id && strcmp(client_id, peer_id) == 0);
}

/*
 * What we do not understand is passed over: an error would have the broker close the connection, and a
 * statestored of another version would never get a word in. Without memory that is the right thing.
 */
static int on_control(int event, void *event_data, void *userdata) {
        const struct mosquitto_evt_control *message = event_data;
        const struct guard *guard = userdata;

        (void)event;
        for (size_t i = 0; i < N_CONTROLS; i++) {
                if (strcmp(controls[i].topic, message->topic) != 0 ||
                    !is_heard(guard, &controls[i], message->client))
                        continue;

                switch (controls[i].handle(guard->plugin, message)) {
                case 0:
                        break;
                case -ENOMEM:
                        return MOSQ_ERR_NOMEM;
                default:
                        mosquitto_log_printf(MOSQ_LOG_WARNING, "statestore: %s: not understood",
                                             controls[i].topic);
                }
        }
        return MOSQ_ERR_SUCCESS;
}

int control_start(struct guard *guard) {
        for (size_t i = 0; i < N_CONTROLS; i++) {
                int result;

                /* 2.1 hands control messages of all listeners to the first that asks. */
                result = mosquitto_callback_register(guard->id, MOSQ_EVT_CONTROL, on_control,
                                                     controls[i].topic, guard);
                if (result != MOSQ_ERR_SUCCESS && result != MOSQ_ERR_ALREADY_EXISTS)
                        return broker_error(result);
        }
        return 0;
}

void control_stop(struct guard *guard) {
        for (size_t i = 0; i < N_CONTROLS; i++)
                mosquitto_callback_unregister(guard->id, MOSQ_EVT_CONTROL, on_control, controls[i].topic);
}
