/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/companion.h"
#include "common/parse.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/*
 * The connections over which requests came, from the first request to the connection's end.
 *
 * mosquitto 2.0 neither tells of a client that connects nor lists those that are there, so this knows the
 * others only when they first send a request. That is enough: a client that never asked for anything has no
 * registrations. There are never more of them than the broker has clients.
 */

struct mosquitto;

/* The stamp: seal ":" number. */
#define CONNECTION_STAMP_SIZE (COMPANION_SEAL_LENGTH + 1 + PARSE_UINT64_DIGITS_MAX + 1)

struct connection {
        UT_hash_handle by_client, by_id, by_number;
        const struct mosquitto *client; /* the broker's, to recognize it by */
        uint64_t number;
        bool held; /* under the present instance id */
        char stamp[CONNECTION_STAMP_SIZE];
        char client_id[];
};

struct connections {
        struct connection *by_client, *by_id, *by_number;
        uint64_t last_number;
        char seal[COMPANION_SEAL_LENGTH + 1];
};

/* Draws the seal and where to count from. Returns 0 or what getrandom() failed with. */
int connections_init(struct connections *connections);
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

/* The number as text. */
struct slice connection_number(const struct connection *connection);
