/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/request.h"

/*
 * What each client has sent since the start, for the console. The table has CLIENT_TABLE_MAX clients:
 * a further one replaces the client that has been idle longest. Client ids and user names longer than
 * CLIENT_TABLE_TEXT_MAX are shortened, so such clients may share an entry. A client that is not verified
 * can claim any id, so it has another entry than the verified client with this id.
 *
 * No I/O, no clock. Not thread-safe.
 */
#define CLIENT_TABLE_MAX      1024
#define CLIENT_TABLE_TEXT_MAX 512

struct client_table;

struct client_usage {
        struct request_origin origin; /* its user is that of the last request; empty: none */
        uint64_t n_requests, n_bytes, n_refused;
        int64_t last_request_ms; /* wall clock */
};

/* Returns 0 or -ENOMEM; the caller owns *ret_table. */
int client_table_new(struct client_table **ret_table);

/* Accepts NULL, returns NULL. */
struct client_table *client_table_free(struct client_table *table);

/* Count a request of this size. If memory is short, a new client is not counted. */
void client_table_count(struct client_table *table, const struct request_origin *origin, size_t n_bytes,
                        bool is_refused, int64_t wall_ms);

/* Return whether a client was replaced since the start. */
bool client_table_is_truncated(const struct client_table *table);

/*
 * The clients, the one with the last request first. previous NULL: the first. Borrowed until the next
 * client_table_count(); NULL after the last.
 */
const struct client_usage *client_table_next(const struct client_table *table,
                                             const struct client_usage *previous);
