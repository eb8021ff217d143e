/* SPDX-License-Identifier: Apache-2.0 */

#include "http/http_connections.h"

#include <string.h>

#include "base/assert.h"

struct http_connection *http_connections_add(struct http_connections *connections,
                                             struct MHD_Connection *handle, const struct sockaddr *peer) {
        struct http_connection *connection = connections->slots;

        while (connection < connections->slots + HTTP_CONNECTIONS_MAX && connection->handle)
                connection++;
        ASSERT(connection < connections->slots + HTTP_CONNECTIONS_MAX);

        *connection = (struct http_connection){ .handle = handle, .number = connections->n_begun++ };
        if (peer->sa_family == AF_INET)
                memcpy(&connection->address, &((const struct sockaddr_in *)peer)->sin_addr,
                       sizeof(struct in_addr));
        else
                connection->address = ((const struct sockaddr_in6 *)peer)->sin6_addr;
        return connection;
}

void http_connections_remove(struct http_connection *connection) {
        connection->handle = NULL;
}

static bool have_same_address(const struct http_connection *a, const struct http_connection *b) {
        return memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

size_t http_connections_n(const struct http_connections *connections) {
        size_t n = 0;

        for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
                n += connections->slots[i].handle && !connections->slots[i].is_closing;
        return n;
}

struct http_connection *http_connections_find(struct http_connections *connections,
                                              bool (*matches)(const struct http_connection *connection)) {
        struct http_connection *found[HTTP_CONNECTIONS_MAX], *best = NULL;
        size_t n_found = 0, n_best = 0;

        for (struct http_connection *each = connections->slots;
             each < connections->slots + HTTP_CONNECTIONS_MAX; each++)
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

bool http_connections_take_turn(struct http_connections *connections, struct http_connection *connection,
                                uint64_t round) {
        for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
                if (connections->slots[i].handle && connections->slots[i].last_turn == round &&
                    have_same_address(&connections->slots[i], connection))
                        return false;
        connection->last_turn = round;
        return true;
}
