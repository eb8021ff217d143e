/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM                       1
#define HASH_FUNCTION(client, length, ret_hash) ((ret_hash) = client_hash(client, length))
#include <uthash.h>

#include "base/bytes.h"
#include "hash/client_hash.h"
#include "plugin/record.h"

/*
 * The connections of the clients that have sent a request, and the disconnection of clients by the
 * plugin. The table owns an open connection. After connections_remove(), the records own it: that of
 * its disconnect, or its last request.
 */

struct fair_queue;
struct mosquitto;
struct plugin;

/*
 * A connection of a client, recorded from its first request to its end, or to the end of its last
 * record. Earlier is not possible: mosquitto 2.0 has no event for a new connection and no list of
 * clients. It is not necessary either: a client without a request has no registrations.
 */
struct connection {
        UT_hash_handle by_client, by_client_id, by_number;
        /* do not dereference, except in a callback for a message of this client */
        const struct mosquitto *client;
        uint64_t number;
        struct fair_queue *queue; /* of the client; open until the connection and its records have ended */
        size_t n_kept;            /* its requests that have not ended */
        bool is_closed;           /* it has ended: its record `disconnect` waits, or is numbered */
        bool is_tracked;  /* the store has registrations of this connection under the present instance id */
        bool is_dropping; /* the broker has dropped a message for this connection, since its first request */
        bool is_slow_watcher;     /* the plugin disconnected the client, as it is tracked and dropping */
        struct record disconnect; /* so that reporting the disconnect needs no memory */
        struct connection *scheduled_prev, *scheduled_next; /* scheduled_prev is NULL outside the list */
        char client_id[];
};

/*
 * The open connections of all clients that have sent a request. The plugin sets no limit: the
 * broker limits its clients.
 */
struct connections {
        struct connection *by_client, *by_client_id, *by_number;
        /* the connections that the next tick kicks; oldest first */
        struct connection *scheduled;
        uint64_t last_number;
};

/* Draw a random number. The first connection gets the number after it. */
void connections_init(struct connections *connections);

/* Free all open connections. */
void connections_deinit(struct plugin *plugin);

/* Add the connection of a client that has none. Returns 0 or -ENOMEM. */
int connections_add(struct plugin *plugin, const struct mosquitto *client, const char *client_id,
                    struct connection **ret_connection);

/* Remove an open connection from the table. The caller reports its disconnect, or frees it. */
void connections_remove(struct connections *connections, struct connection *connection);

/* Return the open connection of the client, or NULL. */
struct connection *connections_find_client(const struct connections *connections,
                                           const struct mosquitto *client);

/* Return the open connection with this client id, or NULL. */
struct connection *connections_find_client_id(const struct connections *connections, struct slice client_id);

/* The memory of a connection with a client id of this length, and of its queue. */
size_t connection_size(size_t client_id_length);

/* Free a connection that is not in the table and has no records. */
void connection_free(struct plugin *plugin, struct connection *connection);

/*
 * Whether WELCOME lists the connection, and its disconnect is reported: it is tracked, or a request that
 * has not ended may register.
 */
bool connection_is_reported(const struct connection *connection);

/* Return NULL if no open connection has this number. */
struct connection *connections_find(const struct connections *connections, uint64_t number);

/* Append the connections for WELCOME. Check buf_failed() for lack of memory. */
void connections_append_welcome(const struct connections *connections, struct buf *bytes);

/*
 * The registrations of all connections are lost: kick the tracked clients, except the sender of
 * HELLO. Call in the callback for HELLO.
 */
void connections_untrack_all(struct plugin *plugin, const struct mosquitto *sender);

/* Kick the client at the next tick, after the PUBACK of its present message. */
void connections_schedule_kick(struct connections *connections, struct connection *connection);

/*
 * Kick the scheduled clients. Call at a tick: a client's connection must not end during a callback
 * for this client, or while the broker publishes. mosquitto before 2.0.15 with per_listener_settings
 * sends no ticks to plugins.
 */
void connections_kick_scheduled(struct plugin *plugin);
