/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * The registrations of KEYNOTIFY (PROTOCOL.md "Notifications"). A registration is one client's interest in one key; the key
 * need not exist. Registrations are found by key, by client, by both, and by connection. Iterations are in the order of
 * registration, so that results are deterministic.
 */

/* A key or a client: its name and the registrations under it. */
struct watched;

/* Identifies a registration: the numbers of its key and its client. Numbers are never reused. */
struct watched_pair {
        uint64_t key, client;
};

/*
 * Reference counted: an ended registration stays readable for notifications that are not yet published. It stores its notify
 * topic, so that a notification formats no topic.
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
        struct slice user;   /* user name of its client, owned; empty: none, or not verified */
        char topic[];        /* the notify topic, NUL-terminated */
};

struct registration *registration_ref(struct registration *registration);

/* Accepts NULL, returns NULL. */
struct registration *registration_unref(struct registration *registration);

/* Append client id and key; also works after the registration has ended. Check buf_failed() for lack of memory. */
void registration_names(const struct registration *registration, struct buf *client, struct buf *key);

/* Return whether the registration belongs to this client; also works after it has ended. */
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

/* Memory of one registration in bytes, including its client and key; for quotas. */
uint64_t watch_cost(struct slice client, struct slice key);

/*
 * Register the client for the key. It must not be registered yet: check with watch_find(). connection: the number of the
 * client's connection; 0 if unknown. While a client has registrations of several connections, watch_of_connection() finds
 * it by one of them; remove those of former connections. Returns 0 or -ENOMEM.
 */
int watch_add(struct watch *watch, struct slice client, struct slice key, uint64_t connection);

/* As watch_add(), with the client's user name. Its length adds to the cost. */
int watch_add_of_user(struct watch *watch, struct slice client, struct slice user, struct slice key,
                      uint64_t connection);

/* Borrowed; NULL where there is none. */
struct registration *watch_find(const struct watch *watch, struct slice client, struct slice key);

/* End the registration, and drop the reference that the watch holds. */
void watch_remove(struct watch *watch, struct registration *registration);

/*
 * The registrations of one key, oldest first; follow next_of_key. Borrowed; NULL where there are none. hash: of the key,
 * under the watch's hash key.
 */
struct registration *watch_of_key(const struct watch *watch, uint64_t hash, struct slice key);

/* The registrations of one client, oldest first; follow next_of_client. Borrowed. */
struct registration *watch_of_client(const struct watch *watch, struct slice client);
struct registration *watch_of_connection(const struct watch *watch, uint64_t connection);

/* The position of an iteration. Initialize with zeros. */
struct watch_cursor {
        uint32_t n_shards_begun;
        struct registration *next;
};

/* Iterate over all registrations. Borrowed; NULL after the last. The caller may remove the returned registration before the
 * next call, but no other. */
struct registration *watch_each(const struct watch *watch, struct watch_cursor *cursor);

/* As watch_each(), but return NULL at the end of the present shard. */
struct registration *watch_each_of_shard(struct watch_cursor *cursor);

/* Begin the next shard. Returns false if there is none. */
bool watch_begin_shard(const struct watch *watch, struct watch_cursor *cursor);

uint64_t watch_n_registrations(const struct watch *watch);
