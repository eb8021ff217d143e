/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/parse.h"
#include "protocol/companion.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/*
 * The connections over which requests came, from the first request to the connection's end.
 *
 * mosquitto 2.0 neither reports to plugins that a client connects nor lists its clients, so the plugin knows a connection
 * from its first request on. That is enough: a client that never sent a request has no registrations. There are at most
 * as many connections as the broker has clients.
 */

struct mosquitto;

struct connection {
        UT_hash_handle by_client, by_id, by_number;
        const struct mosquitto *client; /* the broker's object; compared, never read */
        uint64_t number;
        bool is_tracked; /* under the present instance id */
        char number_text[UINT64_DIGITS_MAX + 1];
        char client_id[];
};

struct connections {
        struct connection *by_client, *by_id, *by_number;
        uint64_t last_number;
};

/* Draw the random number at which the numbers begin. Call companion_mac_init() first. */
void connections_init(struct connections *connections);
void connections_deinit(struct connections *connections);

/*
 * Add a connection with the next number. The client must have no connection yet, and no other connection may have its
 * client id: remove that first. Returns 0 or -ENOMEM.
 */
int connections_add(struct connections *connections, const struct mosquitto *client, const char *client_id,
                    struct connection **ret_connection);

/* Remove the connection and free it. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Find a connection; NULL: there is none. */
struct connection *connections_find_client(const struct connections *connections,
                                           const struct mosquitto *client);
struct connection *connections_find_id(const struct connections *connections, struct slice client_id);
struct connection *connections_find_number(const struct connections *connections, uint64_t number);
