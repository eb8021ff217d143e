/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "plugin/internal.h"

/*
 * Closes the connections that an earlier instance held: what it knew of them is lost. Their ends are not told,
 * the present instance does not know them. The speaker is spared: it is in the middle of a packet.
 */
static int dismiss_holders(struct plugin *plugin, const struct mosquitto *speaker) {
        CLEANUP(buf_deinit) struct buf numbers = { 0 };
        const uint64_t *number;

        for (struct connection *c = plugin->connections.by_client; c; c = c->by_client.next)
                if (c->held && c->client != speaker)
                        buf_append(&numbers, &c->number, sizeof(c->number));
        if (buf_failed(&numbers))
                return -ENOMEM;

        for (struct connection *c = plugin->connections.by_client; c; c = c->by_client.next)
                c->held = false;

        number = (const uint64_t *)numbers.data;
        for (size_t i = 0; i < numbers.length / sizeof(*number); i++) {
                const struct connection *connection;

                /* Whoever is closed leaves a will, and who knows what that sets off. */
                connection = connections_find_number(&plugin->connections, number[i]);
                if (connection)
                        mosquitto_kick_client_by_clientid(connection->client_id, true);
        }
        return 0;
}

/* A hello that is sent again is of the run that we know, and changes nothing. */
static int take_up_run(struct plugin *plugin, uint64_t run, uint64_t sequence) {
        bool is_back = run == plugin->former_run;

        if (run == plugin->run)
                return 0;

        plugin->former_run = plugin->run;
        plugin->run = run;
        plugin->last_sequence = sequence;
        if (!is_back)
                return 0;
        mosquitto_log_printf(MOSQ_LOG_WARNING, "statestore: two statestored throw each other out");
        return tell_rival(plugin);
}

static int hello(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct slice instance = { message->payload, message->payloadlen };
        struct slice present = { plugin->instance, plugin->instance_length };
        uint64_t run, sequence;
        char *peer_id;
        int r;

        if (instance.length == 0 || instance.length > COMPANION_INSTANCE_MAX)
                return -EINVAL;
        r = property_pair(message->properties, &run, &sequence);
        if (r < 0)
                return r;

        peer_id = strdup(mosquitto_client_id(message->client));
        if (!peer_id)
                return -ENOMEM;
        free(plugin->peer_id);
        plugin->peer_id = peer_id;

        if (!slice_equal(instance, present)) {
                r = dismiss_holders(plugin, message->client);
                if (r < 0)
                        return r;
                memcpy(plugin->instance, instance.data, instance.length);
                plugin->instance_length = instance.length;
        }
        r = take_up_run(plugin, run, sequence);
        return r < 0 ? r : tell_welcome(plugin, companion_pair(run, sequence));
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

static int hold(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct connection *connection;
        int r;

        r = find(plugin, message, &connection);
        if (r < 0)
                return r;
        if (!connection)
                return tell_left(plugin, (struct slice){ message->payload, message->payloadlen });

        connection->held = true;
        return 0;
}

static int release(struct plugin *plugin, const struct mosquitto_evt_control *message) {
        struct connection *connection;
        int r;

        r = find(plugin, message, &connection);
        if (r < 0)
                return r;
        if (connection)
                connection->held = false;
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
        { COMPANION_HELLO, hello, true },      { COMPANION_TRACK, hold, false },
        { COMPANION_UNTRACK, release, false }, { COMPANION_DELIVER, deliver_take, false },
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
