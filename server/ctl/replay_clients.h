/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/connection.h"
#include "ctl/options.h"

/*
 * The clients of a recording, for a store that is told by its broker who asks: each has a connection of its own, which
 * begins with its first request and lasts to the end. Those for whom there is none left share the last one.
 */
#define REPLAY_CLIENTS_MAX 100

struct replay_client {
        struct connection *connection;
        struct buf id, filter; /* with their NULs */
        const char *topics[2];
        bool is_disconnected;
};

struct replay_clients {
        const struct options *options;
        struct connection_config config; /* of each, but for client id and topics */
        struct replay_client *clients[REPLAY_CLIENTS_MAX];
        int64_t tended_ms;
};

/* config is copied, what it points to is borrowed. */
void replay_clients_init(struct replay_clients *clients, const struct options *options,
                         const struct connection_config *config);
void replay_clients_deinit(struct replay_clients *clients);

/* That of this number, from 0, connected: anew where its connection has ended. NULL: complained of. */
struct replay_client *replay_clients_find(struct replay_clients *clients, size_t number);

/* As connection_wait() with this client's; all the others' stay up meanwhile. */
enum connection_result replay_clients_wait(struct replay_clients *clients, struct replay_client *client,
                                           const bool *done, int64_t duration_ms);

/* Sends nothing for so long, below 0: not at all. */
void replay_clients_pause(struct replay_clients *clients, int64_t duration_ms);

/* Fills topic, with its NUL: one that this client gets, for answers. */
void replay_client_topic(const struct replay_client *client, const char *last, struct buf *topic);
