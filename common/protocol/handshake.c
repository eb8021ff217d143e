/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/handshake.h"

#include <errno.h>

#include "base/assert.h"
#include "protocol/wire.h"

/* 1. HELLO */

void handshake_hello_append(struct buf *payload, const struct handshake_hello *hello) {
        ASSERT(hello->instance_id.length > 0 && hello->instance_id.length <= COMPANION_INSTANCE_MAX);

        wire_append_number(payload, COMPANION_VERSION_NUMBER, 1);
        wire_append_number(payload, hello->run, 8);
        wire_append_number(payload, hello->number, 8);
        wire_append_number(payload, hello->served_broker_run, 8);
        buf_append(payload, hello->key, COMPANION_KEY_SIZE);
        buf_append_slice(payload, hello->instance_id);
}

int handshake_hello_read(struct slice payload, struct handshake_hello *ret_hello) {
        struct wire_reader reader = { .rest = payload };
        uint64_t version = wire_read_number(&reader, 1), run = wire_read_number(&reader, 8),
                 number = wire_read_number(&reader, 8), served_broker_run = wire_read_number(&reader, 8);

        if (version != COMPANION_VERSION_NUMBER || reader.rest.length <= COMPANION_KEY_SIZE ||
            reader.rest.length > COMPANION_KEY_SIZE + COMPANION_INSTANCE_MAX)
                return -EBADMSG;

        *ret_hello = (struct handshake_hello){ .run = run,
                                               .number = number,
                                               .served_broker_run = served_broker_run,
                                               .instance_id = slice_skip(reader.rest, COMPANION_KEY_SIZE) };
        memcpy(ret_hello->key, reader.rest.data, COMPANION_KEY_SIZE);
        return 0;
}

/* 2. WELCOME */

#define WELCOME_TAKEOVER 1

#define CONNECTION_TRACKED 1
#define CONNECTION_PENDING 2

void handshake_connection_append(struct buf *connections, const struct handshake_connection *connection) {
        wire_append_number(connections,
                           (connection->is_tracked ? CONNECTION_TRACKED : 0) |
                                   (connection->is_pending ? CONNECTION_PENDING : 0),
                           1);
        wire_append_number(connections, connection->number, 8);
}

void handshake_welcome_append(struct buf *text, const struct handshake_welcome *welcome) {
        wire_append_number(text, COMPANION_VERSION_NUMBER, 1);
        wire_append_number(text, welcome->is_takeover ? WELCOME_TAKEOVER : 0, 1);
        wire_append_number(text, welcome->broker_run, 8);
        wire_append_number(text, welcome->published, 8);
        buf_append_slice(text, welcome->connections);
}

/* Also returns false for a malformed connection, and leaves it in the slice. */
bool handshake_next_connection(struct slice *connections, struct handshake_connection *ret_connection) {
        struct wire_reader reader = { .rest = *connections };
        uint64_t flags = wire_read_number(&reader, 1), number = wire_read_number(&reader, 8);

        if (reader.has_failed || flags > (CONNECTION_TRACKED | CONNECTION_PENDING) || number == 0)
                return false;

        *ret_connection = (struct handshake_connection){ .number = number,
                                                         .is_tracked = flags & CONNECTION_TRACKED,
                                                         .is_pending = flags & CONNECTION_PENDING };
        *connections = reader.rest;
        return true;
}

int handshake_welcome_read(struct slice text, struct handshake_welcome *ret_welcome) {
        struct wire_reader reader = { .rest = text };
        uint64_t version = wire_read_number(&reader, 1), flags = wire_read_number(&reader, 1);
        struct handshake_welcome welcome = { .is_takeover = flags };
        struct handshake_connection connection;

        welcome.broker_run = wire_read_number(&reader, 8);
        welcome.published = wire_read_number(&reader, 8);
        if (reader.has_failed || version != COMPANION_VERSION_NUMBER || flags > WELCOME_TAKEOVER)
                return -EBADMSG;
        welcome.connections = reader.rest;
        while (handshake_next_connection(&reader.rest, &connection))
                ;
        if (reader.rest.length > 0)
                return -EBADMSG;

        *ret_welcome = welcome;
        return 0;
}
