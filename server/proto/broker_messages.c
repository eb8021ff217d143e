/* SPDX-License-Identifier: Apache-2.0 */

#include "proto/broker_messages.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/parse.h"

bool stamp_read(const struct message *message, struct slice seal, struct stamp *ret_stamp) {
        struct slice stamped_seal, number;
        struct stamp stamp = { 0 };

        if (!seal.data)
                return false;

        stamped_seal = slice_split(message_property(message, COMPANION_PROPERTY_SEAL), ':', &number);
        stamp.client_id = message_property(message, COMPANION_PROPERTY_CLIENT_ID);
        stamp.username = message_property(message, COMPANION_PROPERTY_USERNAME);
        if (!slice_equal(stamped_seal, seal) || parse_uint64(number, &stamp.connection) < 0 ||
            stamp.connection == 0 || stamp.client_id.length == 0)
                return false;

        *ret_stamp = stamp;
        return true;
}

int welcome_read(struct slice payload, struct slice *ret_seal, uint64_t **ret_connections,
                 size_t *ret_n_connections) {
        CLEANUP(cleanup_free) uint64_t *connections = NULL;
        size_t n_connections = 0, capacity = 0;
        struct slice rest, seal;
        int r;

        seal = slice_split(payload, '\n', &rest);
        if (seal.length != COMPANION_SEAL_LENGTH)
                return -EBADMSG;

        while (rest.length > 0) {
                struct slice line = slice_split(rest, '\n', &rest);

                r = array_reserve((void **)&connections, &capacity, n_connections + 1, sizeof(*connections));
                if (r < 0)
                        return r;
                if (parse_uint64(line, &connections[n_connections]) < 0)
                        return -EBADMSG;
                n_connections++;
        }
        if (n_connections > 1)
                qsort(connections, n_connections, sizeof(*connections), compare_uint64);

        *ret_seal = seal;
        *ret_connections = take_ptr(&connections);
        *ret_n_connections = n_connections;
        return 0;
}

struct connection_text connection_text(uint64_t connection) {
        struct connection_text text = { 0 };

        text.length = format_uint64(text.text, connection, 1);
        return text;
}
