/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/parse.h"
#include "protocol/companion.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/*
 * The connections over which requests came, from the first request to the connection's end.
 *
 * mosquitto 2.0 neither tells plugins of a client that connects nor lists its clients, so a connection is known from its
 * first request on. That is enough: a client that never sent a request has no registrations. There are never more
 * connections than the broker has clients.
 */

struct mosquitto;

struct connection {
        UT_hash_handle by_client, by_id, by_number;
        const struct mosquitto *client; /* the broker's, to recognize it by */
        uint64_t number;
        bool is_tracked; /* under the present instance id */
        char number_text[UINT64_DIGITS_MAX + 1];
        char client_id[];
};

struct connections {
        struct connection *by_client, *by_id, *by_number;
        uint64_t last_number;
};

/* Draw the number to count from. companion_mac_init() comes first. */
void connections_init(struct connections *connections);
void connections_deinit(struct connections *connections);

/*
 * A new one. The client must have none yet, nor may another one bear its id: take that out first. Returns 0 or
 * -ENOMEM.
 */
int connections_add(struct connections *connections, const struct mosquitto *client, const char *client_id,
                    struct connection **ret_connection);

/* Frees it. */
void connections_remove(struct connections *connections, struct connection *connection);

/* NULL where there is none. */
struct connection *connections_find_client(const struct connections *connections,
                                           const struct mosquitto *client);
struct connection *connections_find_id(const struct connections *connections, struct slice client_id);
struct connection *connections_find_number(const struct connections *connections, uint64_t number);
