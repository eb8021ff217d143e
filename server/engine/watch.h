/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * KEYNOTIFY's registrations (PROTOCOL.md "Notifications"), found by key, by client, by both, and by
 * connection. A registration is
 * one client's interest in one key; the key need not exist. Orders are those in which registrations were made: no result
 * depends on an address.
 */

/* A key or a client: its name and the registrations under it. */
struct watched;

/* Identifies a registration: the numbers of its key and of its client, which are never given again. */
struct watched_pair {
        uint64_t key, client;
};

/*
 * Reference counted: one that has ended stays readable for the notifications that have yet to leave. The
 * topic is spelled out once, so that telling a client formats nothing.
 */
struct registration {
        UT_hash_handle hh; /* by pair */
        struct watched_pair pair;
        uint32_t n_references;
        uint32_t topic_length;
        struct watched *key; /* NULL once it has ended, as is client */
        struct watched *client;
        struct registration *next_of_key, *previous_of_key;
        struct registration *next_of_client, *previous_of_client;
        uint64_t connection; /* over which it was made, 0: unknown */
        struct slice
                user; /* as which its client had logged in, owned; empty: none, or nobody vouches for it */
        char topic[]; /* where it is told, NUL-terminated */
};

struct registration *registration_ref(struct registration *registration);

/* Accepts NULL, returns NULL. */
struct registration *registration_unref(struct registration *registration);

/* Appends whose registration it is, also when it has ended. Out of memory is the buffers' to tell. */
void registration_names(const struct registration *registration, struct buf *client, struct buf *key);

/* Whether it is this client's, also when it has ended. */
bool registration_is_of(const struct registration *registration, struct slice client);

#define WATCH_SHARD_BITS 8
#define WATCH_N_SHARDS   (UINT32_C(1) << WATCH_SHARD_BITS)

/* Hash tables in shards: see engine/uthash_table.h. */
struct watch {
        struct watched *keys[WATCH_N_SHARDS];
        struct watched *clients[WATCH_N_SHARDS];
        struct watched *connections[WATCH_N_SHARDS]; /* the clients whose connection has a number */
        struct registration *registrations[WATCH_N_SHARDS];
        uint64_t n_registrations;
        uint64_t n_watched; /* keys and clients, since the start: the next one's number */
        uint64_t n_bytes;   /* the sum of watch_cost() */
        struct hash_key hash_key;
};

void watch_init(struct watch *watch, const struct hash_key *hash_key);
void watch_deinit(struct watch *watch);

/* What one registration takes, its share of client and key included, in bytes. */
uint64_t watch_cost(struct slice client, struct slice key);

/*
 * Registers the client for the key. connection names the client's connection where the broker tells them
 * apart, else 0; all registrations of one client are of one connection, or will be once those of former connections
 * have been removed: until then the client is found by one of them. Returns 0 or -ENOMEM. There must be none yet:
 * watch_find().
 */
int watch_add(struct watch *watch, struct slice client, struct slice key, uint64_t connection);

/* With the user as which the client had logged in; costs its length more. */
int watch_add_of_user(struct watch *watch, struct slice client, struct slice user, struct slice key,
                      uint64_t connection);

/* Borrowed; NULL where there is none. */
struct registration *watch_find(const struct watch *watch, struct slice client, struct slice key);

/* Ends it. */
void watch_remove(struct watch *watch, struct registration *registration);

/*
 * The registrations of one key, oldest first; follow next_of_key. Borrowed; NULL where there are none. hash: of the key,
 * under the watch's hash key.
 */
struct registration *watch_of_key(const struct watch *watch, uint64_t hash, struct slice key);

/* The registrations of one client, oldest first; follow next_of_client. Borrowed. */
struct registration *watch_of_client(const struct watch *watch, struct slice client);
struct registration *watch_of_connection(const struct watch *watch, uint64_t connection);

/* Where an iteration is. All zeros: before the first registration. */
struct watch_cursor {
        uint32_t n_shards_begun;
        struct registration *next;
};

/* Every registration. Borrowed; NULL ends. Before the next call it may be removed, and no other one. */
struct registration *watch_each(const struct watch *watch, struct watch_cursor *cursor);

/* The same up to the end of the shard that has begun. */
struct registration *watch_each_of_shard(struct watch_cursor *cursor);

/* Begin the next shard. False where there is none. */
bool watch_begin_shard(const struct watch *watch, struct watch_cursor *cursor);

uint64_t watch_n_registrations(const struct watch *watch);
