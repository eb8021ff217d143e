/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers are counted up from a random one, not from the clock: a gateway without a battery clock may start
 * twice at the same hour.
 */

#include "plugin/connections.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* Leaves room to count, below what fits a signed number. */
#define FIRST_NUMBER_BITS 62

void connections_init(struct connections *connections) {
        uint64_t number;

        randombytes_buf(&number, sizeof(number));
        *connections = (struct connections){ .last_number = number >> (64 - FIRST_NUMBER_BITS) };
}

void connections_deinit(struct connections *connections) {
        struct connection *connection, *next;

        HASH_CLEAR(by_id, connections->by_id);
        HASH_CLEAR(by_number, connections->by_number);
        HASH_ITER(by_client, connections->by_client, connection, next) {
                HASH_DELETE(by_client, connections->by_client, connection);
                free(connection);
        }
}

/* What was not added has no table: that is uthash's word for out of memory. */
static bool is_in(const UT_hash_handle *handle) {
        return handle->tbl;
}

void connections_remove(struct connections *connections, struct connection *connection) {
        if (is_in(&connection->by_client))
                HASH_DELETE(by_client, connections->by_client, connection);
        if (is_in(&connection->by_id))
                HASH_DELETE(by_id, connections->by_id, connection);
        if (is_in(&connection->by_number))
                HASH_DELETE(by_number, connections->by_number, connection);
        free(connection);
}

int connections_add(struct connections *connections, const struct mosquitto *client, const char *client_id,
                    struct connection **ret_connection) {
        struct connection *connection;
        size_t id_size = strlen(client_id) + 1;

        connection = calloc(1, sizeof(*connection) + id_size);
        if (!connection)
                return -ENOMEM;
        connection->client = client;
        connection->number = ++connections->last_number;
        memcpy(connection->client_id, client_id, id_size);
        snprintf(connection->number_text, sizeof(connection->number_text), "%" PRIu64, connection->number);

        HASH_ADD(by_client, connections->by_client, client, sizeof(connection->client), connection);
        HASH_ADD(by_number, connections->by_number, number, sizeof(connection->number), connection);
        HASH_ADD_KEYPTR(by_id, connections->by_id, connection->client_id, id_size - 1, connection);
        if (!is_in(&connection->by_client) || !is_in(&connection->by_number) || !is_in(&connection->by_id)) {
                connections_remove(connections, connection);
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

struct connection *connections_find_id(const struct connections *connections, struct slice client_id) {
        struct connection *connection;

        HASH_FIND(by_id, connections->by_id, client_id.data, client_id.length, connection);
        return connection;
}

struct connection *connections_find_number(const struct connections *connections, uint64_t number) {
        struct connection *connection;

        HASH_FIND(by_number, connections->by_number, &number, sizeof(number), connection);
        return connection;
}
