/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each connection has a number. The first number is random, so that a restarted broker does not use
 * a number again. Numbers from the clock could repeat: a gateway without a battery-backed clock may
 * boot twice with the same time.
 */

#include "plugin/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/random.h"
#include "fair_queue/fair_queue.h"
#include "plugin/broker.h"
#include "plugin/internal.h"
#include "protocol/handshake.h"

/* The first number is below 2^62, so that numbers stay below 2^63. */
#define FIRST_NUMBER_BITS 62

void connections_init(struct connections *connections) {
        uint64_t number;

        random_fill(&number, sizeof(number));
        *connections = (struct connections){ .last_number = number >> (64 - FIRST_NUMBER_BITS) };
}

size_t connection_size(size_t client_id_length) {
        return sizeof(struct connection) + client_id_length + 1 + fair_queue_size(client_id_length);
}

void connection_free(struct plugin *plugin, struct connection *connection) {
        fair_queues_close(&plugin->records.queues, connection->queue);
        free(connection);
}

bool connection_is_reported(const struct connection *connection) {
        return connection->is_tracked || connection->n_kept > 0;
}

void connections_deinit(struct plugin *plugin) {
        struct connections *connections = &plugin->connections;
        struct connection *connection, *next;

        HASH_CLEAR(by_client_id, connections->by_client_id);
        HASH_CLEAR(by_number, connections->by_number);
        HASH_ITER(by_client, connections->by_client, connection, next) {
                HASH_DELETE(by_client, connections->by_client, connection);
                connection_free(plugin, connection);
        }
}

/* uthash leaves tbl NULL if HASH_ADD fails for lack of memory. */
static bool is_added(const UT_hash_handle *handle) {
        return handle->tbl;
}

static void unschedule_kick(struct connections *connections, struct connection *connection) {
        if (!connection->scheduled_prev)
                return;
        DL_DELETE2(connections->scheduled, connection, scheduled_prev, scheduled_next);
        connection->scheduled_prev = NULL;
}

void connections_remove(struct connections *connections, struct connection *connection) {
        unschedule_kick(connections, connection);
        if (is_added(&connection->by_client))
                HASH_DELETE(by_client, connections->by_client, connection);
        if (is_added(&connection->by_client_id))
                HASH_DELETE(by_client_id, connections->by_client_id, connection);
        if (is_added(&connection->by_number))
                HASH_DELETE(by_number, connections->by_number, connection);
}

int connections_add(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                    struct connection **ret_connection) {
        struct connections *connections = &plugin->connections;
        struct connection *connection;
        size_t id_size = strlen(client_id) + 1;

        connection = calloc(1, sizeof(*connection) + id_size);
        if (!connection)
                return -ENOMEM;
        if (fair_queues_open(&plugin->records.queues, slice_from_string(client_id), &connection->queue) <
            0) {
                free(connection);
                return -ENOMEM;
        }
        connection->client = client;
        connection->number = ++connections->last_number;
        memcpy(connection->client_id, client_id, id_size);

        HASH_ADD(by_client, connections->by_client, client, sizeof(connection->client), connection);
        HASH_ADD(by_number, connections->by_number, number, sizeof(connection->number), connection);
        HASH_ADD_KEYPTR(by_client_id, connections->by_client_id, connection->client_id, id_size - 1,
                        connection);
        if (!is_added(&connection->by_client) || !is_added(&connection->by_number) ||
            !is_added(&connection->by_client_id)) {
                connections_remove(connections, connection);
                connection_free(plugin, connection);
                return -ENOMEM;
        }

        *ret_connection = connection;
        return 0;
}

struct connection *connections_find_client(const struct connections *connections,
                                           const struct mosquitto *client) {
        struct connection *connection;

        HASH_FIND(by_client, connections->by_client, &client, sizeof(client), connection);
        return connection;
}

struct connection *connections_find_client_id(const struct connections *connections,
                                              struct slice client_id) {
        struct connection *connection;

        HASH_FIND(by_client_id, connections->by_client_id, client_id.data, client_id.length, connection);
        return connection;
}

struct connection *connections_find(const struct connections *connections, uint64_t number) {
        struct connection *connection;

        HASH_FIND(by_number, connections->by_number, &number, sizeof(number), connection);
        return connection;
}

void connections_append_welcome(const struct connections *connections, struct buf *bytes) {
        for (const struct connection *c = connections->by_client; c; c = c->by_client.next)
                if (connection_is_reported(c))
                        handshake_connection_append(
                                bytes, &(struct handshake_connection){ c->number, c->is_tracked,
                                                                       .is_pending = c->n_kept > 0 });
}

void connections_schedule_kick(struct connections *connections, struct connection *connection) {
        if (!connection->scheduled_prev)
                DL_APPEND2(connections->scheduled, connection, scheduled_prev, scheduled_next);
}

void connections_kick_scheduled(struct plugin *plugin) {
        struct connection *connection;

        /*
         * Start again at the head each time: the kick publishes the client's will, which can end
         * other connections.
         */
        while ((connection = plugin->connections.scheduled)) {
                unschedule_kick(&plugin->connections, connection);
                mosquitto_kick_client_by_clientid(connection->client_id, true);
        }
}

void connections_untrack_all(struct plugin *plugin, const struct mosquitto *sender) {
        struct connections *connections = &plugin->connections;

        for (struct connection *c = connections->by_client; c; c = c->by_client.next) {
                if (c->client == sender)
                        unschedule_kick(connections, c);
                else if (c->is_tracked)
                        connections_schedule_kick(connections, c);
                c->is_tracked = false;
        }
        connections_kick_scheduled(plugin);
}
