/* SPDX-License-Identifier: Apache-2.0 */

#include "http/connections.h"

#include <string.h>

#include "base/assert.h"

struct connection *connections_add(struct connections *connections, struct MHD_Connection *handle,
                                   const struct sockaddr *peer) {
        struct connection *connection = connections->slots;

        while (connection < connections->slots + CONNECTIONS_MAX && connection->handle)
                connection++;
        ASSERT(connection < connections->slots + CONNECTIONS_MAX);

        *connection = (struct connection){ .handle = handle, .number = connections->n_begun++ };
        if (peer->sa_family == AF_INET)
                memcpy(&connection->address, &((const struct sockaddr_in *)peer)->sin_addr,
                       sizeof(struct in_addr));
        else
                connection->address = ((const struct sockaddr_in6 *)peer)->sin6_addr;
        return connection;
}

void connections_remove(struct connection *connection) {
        connection->handle = NULL;
}

static bool have_same_address(const struct connection *a, const struct connection *b) {
        return memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

size_t connections_n(const struct connections *connections) {
        size_t n = 0;

        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
                n += connections->slots[i].handle && !connections->slots[i].is_closing;
        return n;
}

struct connection *connections_find(struct connections *connections,
                                    bool (*matches)(const struct connection *connection)) {
        struct connection *found[CONNECTIONS_MAX], *best = NULL;
        size_t n_found = 0, n_best = 0;

        for (struct connection *each = connections->slots; each < connections->slots + CONNECTIONS_MAX;
             each++)
                if (each->handle && !each->is_closing && matches(each))
                        found[n_found++] = each;

        for (size_t i = 0; i < n_found; i++) {
                size_t n = 0;

                for (size_t j = 0; j < n_found; j++)
                        n += have_same_address(found[i], found[j]);
                if (n > n_best || (n == n_best && found[i]->number < best->number)) {
                        best = found[i];
                        n_best = n;
                }
        }
        return best;
}

bool connections_take_turn(struct connections *connections, struct connection *connection, uint64_t round) {
        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
                if (connections->slots[i].handle && connections->slots[i].last_turn == round &&
                    have_same_address(&connections->slots[i], connection))
                        return false;
        connection->last_turn = round;
        return true;
}
