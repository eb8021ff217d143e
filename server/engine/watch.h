/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * The registrations of KEYNOTIFY (PROTOCOL.md "Notifications"). A registration is one client's
 * interest in one key; the key need not exist. Registrations are found by key, by client, by both,
 * and by connection. The registrations of one key or one client are in the order of registration.
 * watch_each() goes shard by shard, in the order of registration within a shard. Results are
 * therefore deterministic.
 *
 * Without the plugin, the store learns from the broker's acknowledgement whether a notification had
 * a subscriber. A client is *subscribed* after one of its notifications had a subscriber. A client
 * is *unreachable* if one of its notifications had no subscriber and the client is not subscribed.
 * A client is *idle* while it sends no request. The caller ends the registrations of an unreachable
 * client that has been idle for some time. The watch drops this state with the client's last
 * registration.
 */

/* A key or a client: its name and its registrations. */
struct watch_node;

/* Identifies a registration: the numbers of its key and its client. Numbers are never reused. */
struct registration_pair {
        uint64_t key, client;
};

/*
 * Reference counted: an ended registration stays readable for notifications that are not yet
 * published. It stores its notify topic, so that the topic is formatted once and not for each
 * notification.
 */
struct registration {
        UT_hash_handle hh; /* by pair */
        struct registration_pair pair;
        uint32_t n_references;
        uint32_t topic_length;
        struct watch_node *key, *client; /* NULL after watch_remove() */
        struct registration *next_of_key, *previous_of_key;
        struct registration *next_of_client, *previous_of_client;
        uint64_t connection; /* over which it was made, 0: unknown */
        struct slice user;   /* user name of its client; empty: none, or not verified */
        char topic[];        /* the notify topic, NUL-terminated, then the user name */
};

struct registration *registration_ref(struct registration *registration);

/* Accepts NULL, returns NULL. */
struct registration *registration_unref(struct registration *registration);

/*
 * Append client id and key; also works after the registration has ended. Check buf_failed() for
 * lack of memory.
 */
void registration_names(const struct registration *registration, struct buf *client, struct buf *key);

#define WATCH_SHARD_BITS 8
#define WATCH_N_SHARDS   (UINT32_C(1) << WATCH_SHARD_BITS)

/* The position of an iteration. Initialize with zeros. */
struct watch_cursor {
        uint32_t n_shards_begun;
        struct registration *next;
};

/* Hash tables in shards: see engine/uthash_table.h. */
struct watch {
        struct watch_node *keys[WATCH_N_SHARDS];
        struct watch_node *clients[WATCH_N_SHARDS];
        struct watch_node *connections[WATCH_N_SHARDS]; /* clients by the number of their connection */
        struct watch_node *unreachable;                 /* list of clients, the longest idle first; utlist */
        struct registration *registrations[WATCH_N_SHARDS];
        struct watch_node *ended; /* ended clients whose registrations remain to be removed */
        uint64_t n_registrations; /* includes those of ended clients */
        uint64_t n_ended_registrations, n_ended_bytes; /* of n_registrations and n_bytes: of ended clients */
        struct watch_cursor
                check; /* for watch_each(): stays valid when registrations are added or removed */
        struct watch_node *next_key; /* for watch_next_key() */
        uint32_t n_key_shards_begun; /* likewise */
        uint64_t n_nodes;            /* nodes made since the start; the number of the next node */
        uint64_t n_bytes;            /* the sum of watch_cost() */
        struct hash_key hash_key;
};

void watch_init(struct watch *watch, const struct hash_key *hash_key);
void watch_deinit(struct watch *watch);

/*
 * Memory of one registration in bytes, including its client and key; for quotas. user: empty for
 * none.
 */
uint64_t watch_cost(struct slice client, struct slice key, struct slice user);

/*
 * The names of a registration, with the hash of the key under the watch's hash key. Slices are
 * borrowed.
 */
struct watch_names {
        struct slice client, key;
        uint64_t key_hash;
};

/* Return these names with the key's hash. For a caller that has not hashed the key yet. */
struct watch_names watch_names(const struct watch *watch, struct slice client, struct slice key);

/*
 * Register the client for the key. It must not be registered yet: check with watch_find(). user:
 * its user name; empty: none. connection: the number of the client's connection; 0 if unknown. The
 * watch indexes a client by one connection only, so the caller must first remove the client's
 * registrations of former connections. Only restored registrations of a client may belong to
 * several connections. Returns the registration, borrowed, or NULL if out of memory.
 */
struct registration *watch_add(struct watch *watch, struct watch_names names, struct slice user,
                               uint64_t connection);

/* Return the registration of this client and key; NULL if there is none. Borrowed. */
struct registration *watch_find(const struct watch *watch, struct watch_names names);

/* End the registration, and drop the reference that the watch holds. */
void watch_remove(struct watch *watch, struct registration *registration);

/*
 * The registrations of one key, oldest first; follow watch_next_of_key(). Borrowed; NULL if there
 * are none. hash: of the key, under the watch's hash key.
 */
struct registration *watch_of_key(const struct watch *watch, uint64_t hash, struct slice key);
struct registration *watch_next_of_key(const struct registration *registration);

/* The registrations of one client, oldest first; follow next_of_client. Borrowed. */
struct registration *watch_of_client(const struct watch *watch, struct slice client);
struct registration *watch_of_connection(const struct watch *watch, uint64_t connection);

/* Whether a registration has a connection other than 0. */
bool watch_has_connections(const struct watch *watch);

/* What the registrations of a client use. */
struct watch_usage {
        uint64_t n_registrations;
        uint64_t n_bytes; /* the sum of watch_cost() */
};
struct watch_usage watch_usage_of_client(const struct watch *watch, struct slice client);

/* Mark the client of this registration as subscribed: a notification had a subscriber. */
void watch_set_subscribed(struct watch *watch, struct registration *registration);

/* Return whether the registration's client is subscribed. */
bool watch_is_subscribed(const struct registration *registration);

/*
 * Mark the client of this registration as unreachable: a notification had no subscriber, and the
 * client is not subscribed. If the client was not unreachable before, it is idle from now_ns on.
 */
void watch_set_unreachable(struct watch *watch, struct registration *registration, int64_t now_ns);

/* The client has sent a request: if it is unreachable, it is idle from now_ns on. */
void watch_restart_idle(struct watch *watch, struct slice client, int64_t now_ns);

/*
 * The oldest registration of the unreachable client that is idle longest. Borrowed; NULL if no
 * client is unreachable.
 */
struct registration *watch_longest_idle(const struct watch *watch);

/*
 * The time at which that client became idle, in monotonic nanoseconds; INT64_MAX if no client is
 * unreachable.
 */
int64_t watch_longest_idle_since(const struct watch *watch);

/*
 * End the client of the registration, in constant time for any number of registrations. From then
 * on, only watch_of_ended() finds the client's registrations. The caller must remove them soon,
 * because they count in n_registrations and n_bytes. If the same client id registers again
 * meanwhile, the watch makes a new client.
 */
void watch_end_client(struct watch *watch, struct registration *registration);

/* Whether the registration was removed, or its client has ended. */
bool watch_has_ended(const struct registration *registration);

/*
 * A registration of the client that ended first. Borrowed; NULL if no registration of an ended
 * client remains.
 */
struct registration *watch_of_ended(const struct watch *watch);

/*
 * ended: a registration of an ended client. Return whether the same client id has registered again
 * for the same key.
 */
bool watch_is_registered_again(const struct watch *watch, const struct registration *ended);

/*
 * Iterate over all registrations. Borrowed; NULL after the last. The caller may remove the returned
 * registration before the next call, but no other; with &watch->check any.
 */
struct registration *watch_each(const struct watch *watch, struct watch_cursor *cursor);

/* Let watch_next_key() begin with the first key. */
void watch_restart_keys(struct watch *watch);

/*
 * Iterate over the keys with registrations. Registrations may be added and removed in between.
 * Returns false after the last. *ret_key is borrowed until a registration is removed. It may have
 * only registrations of ended clients.
 */
bool watch_next_key(struct watch *watch, struct slice *ret_key);
