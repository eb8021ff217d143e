/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/uthash_table.h"
#include "hash/hash.h"
#include "policy/policy.h"

/*
 * The registrations of KEYNOTIFY (PROTOCOL.md "Notifications"). A registration is one client's
 * interest in one key; the key need not exist. Registrations are found by key, by client, by both,
 * and by connection. The registrations of one key or one client are in the order of registration.
 * registrations_each() goes shard by shard, in the order of registration within a shard. Results
 * are therefore deterministic.
 *
 * Without the plugin, the store learns from the broker's acknowledgement whether a notification had
 * a subscriber. A client is *subscribed* after one of its notifications had a subscriber. A client
 * is *unreachable* if one of its notifications had no subscriber and the client is not subscribed.
 * A client is *idle* while it sends no request. The caller ends the registrations of an unreachable
 * client that has been idle for some time. This state is dropped with the client's last
 * registration.
 */

/* A key or a client: its name and its registrations. */
struct registration_node;

/* Identifies a registration: the numbers of its key and its client. Numbers are never reused. */
struct registration_pair {
        uint64_t key, client;
};

/*
 * Reference counted: an ended registration stays readable for notifications that are not yet
 * published.
 */
struct registration {
        UT_hash_handle hh; /* by pair */
        struct registration_pair pair;
        uint32_t n_references;
        struct registration_node *key, *client; /* NULL after registrations_remove() */
        struct registration *next_of_key, *previous_of_key;
        struct registration *next_of_client, *previous_of_client;
        uint64_t connection; /* over which it was made, 0: unknown */
        bool replaces_ended; /* an ended one of the same client and key was removed without a change */
        struct slice client_id, key_name;
        struct slice user; /* user name of its client; empty: none, or not verified */
        uint8_t bytes[];   /* of the three slices */
};

struct registration *registration_ref(struct registration *registration);

/* Accepts NULL, returns NULL. */
struct registration *registration_unref(struct registration *registration);

/* Return the client of the registration. Borrows from it. */
static inline struct request_origin registration_origin(const struct registration *registration) {
        return (struct request_origin){ registration->client_id, registration->user,
                                        registration->connection != 0 };
}

#define REGISTRATIONS_SHARD_BITS 8
#define REGISTRATIONS_N_SHARDS   (UINT32_C(1) << REGISTRATIONS_SHARD_BITS)

/* The position of an iteration. Initialize with zeros. */
struct registration_cursor {
        uint32_t n_shards_begun;
        struct registration *next;
};

/* Hash tables in shards: see engine/uthash_table.h. */
struct registrations {
        struct registration_node *keys[REGISTRATIONS_N_SHARDS];
        struct registration_node *clients[REGISTRATIONS_N_SHARDS];
        struct registration_node *connections[REGISTRATIONS_N_SHARDS]; /* clients, by their connection */
        struct registration *pairs[REGISTRATIONS_N_SHARDS];
        struct registration_node *unreachable; /* list of clients, the longest idle first; utlist */
        struct registration_node *ended;       /* clients whose registrations remain to be removed */
        uint64_t n_registrations;              /* includes those of ended clients */
        /* These positions stay valid when registrations are added or removed: */
        struct registration_cursor check;            /* for the policy: engine/revocation.h */
        struct registration_cursor connection_check; /* for the connections: engine/disconnect.h */
        struct registration_node *next_key;          /* for registrations_next_key() */
        uint32_t n_key_shards_begun;                 /* likewise */
        uint64_t n_nodes; /* nodes made since the start; the number of the next node */
        uint64_t n_bytes; /* the sum of registration_cost() */
        struct hash_key hash_key;
};

void registrations_init(struct registrations *table, const struct hash_key *hash_key);
void registrations_deinit(struct registrations *table);

/*
 * Memory of one registration in bytes, including its client and key; for quotas. user: empty for
 * none.
 */
uint64_t registration_cost(struct slice client, struct slice key, struct slice user);

/*
 * What the registration takes in the recipients of a notification, in bytes: see state/recipients.h.
 * connection: 0 if unknown.
 */
uint64_t registration_recipient_bytes(struct slice client, uint64_t connection);

/*
 * The names of a registration, with the hash of the key under the table's hash key. Slices are
 * borrowed.
 */
struct registration_names {
        struct slice client, key;
        uint64_t key_hash;
};

/* Return these names with the key's hash. For a caller that has not hashed the key yet. */
struct registration_names registrations_names(const struct registrations *table, struct slice client,
                                              struct slice key);

/*
 * Register the client for the key. It must not be registered yet: check with registrations_find().
 * user: its user name; empty: none. connection: the number of the client's connection; 0 if
 * unknown. The table indexes a client by one connection only, so the caller must first end the
 * client's registrations of former connections. Only loaded registrations of a client may belong
 * to several connections. Returns the registration, borrowed, or NULL if out of memory.
 */
struct registration *registrations_add(struct registrations *table, struct registration_names names,
                                       struct slice user, uint64_t connection);

/*
 * Add a registration whose client has ended: only registrations_of_ended() finds it. Returns 0 or
 * -ENOMEM.
 */
int registrations_add_ended(struct registrations *table, struct registration_names names);

/* Return the registration of this client and key; NULL if there is none. Borrowed. */
struct registration *registrations_find(const struct registrations *table, struct registration_names names);

/* End the registration, and drop the reference that the table holds. */
void registrations_remove(struct registrations *table, struct registration *registration);

/*
 * The registrations of one key, oldest first; follow registration_next_of_key(). Borrowed; NULL if
 * there are none. hash: of the key, under the table's hash key.
 */
struct registration *registrations_of_key(const struct registrations *table, uint64_t hash,
                                          struct slice key);
struct registration *registration_next_of_key(const struct registration *registration);

/*
 * The registrations of one client, or those made over one connection, oldest first; follow
 * next_of_client. Borrowed; NULL if there are none.
 */
struct registration *registrations_of_client(const struct registrations *table, struct slice client);
struct registration *registrations_of_connection(const struct registrations *table, uint64_t connection);

/* What all registrations of a key take in the recipients of a notification, also ended ones. */
uint64_t registrations_recipient_bytes(const struct registrations *table, struct registration_names names);

/* Whether a registration has a connection other than 0: it was made at a broker with the plugin. */
bool registrations_have_connections(const struct registrations *table);

/* What the registrations of a client use. */
struct registration_usage {
        uint64_t n_registrations;
        uint64_t n_bytes; /* the sum of registration_cost() */
};
struct registration_usage registrations_usage_of_client(const struct registrations *table,
                                                        struct slice client);

/* Mark the client of this registration as subscribed: a notification had a subscriber. */
void registrations_set_subscribed(struct registrations *table, struct registration *registration);

/* Return whether the registration's client is subscribed. */
bool registration_is_subscribed(const struct registration *registration);

/*
 * Mark the client of this registration as unreachable: a notification had no subscriber, and the
 * client is not subscribed. If the client was not unreachable before, it is idle from now_ns on.
 */
void registrations_set_unreachable(struct registrations *table, struct registration *registration,
                                   int64_t now_ns);

/* The client has sent a request: if it is unreachable, it is idle from now_ns on. */
void registrations_restart_idle(struct registrations *table, struct slice client, int64_t now_ns);

/*
 * The oldest registration of the unreachable client that is idle longest. Borrowed; NULL if no
 * client is unreachable.
 */
struct registration *registrations_longest_idle(const struct registrations *table);

/*
 * The time at which that client became idle, in monotonic nanoseconds; INT64_MAX if no client is
 * unreachable.
 */
int64_t registrations_longest_idle_since(const struct registrations *table);

/*
 * End the client of the registration, in constant time for any number of registrations. From then
 * on, only registrations_of_ended() finds the client's registrations. The caller must remove them
 * soon, because they count in n_registrations and n_bytes. If the same client id registers again
 * meanwhile, the table gets a new client.
 */
void registrations_end_client(struct registrations *table, struct registration *registration);

/* Whether the registration was removed, or its client has ended. */
bool registration_has_ended(const struct registration *registration);

/*
 * A registration of the client that ended first. Borrowed; NULL if no registration of an ended
 * client remains.
 */
struct registration *registrations_of_ended(const struct registrations *table);

/*
 * Iterate over all registrations. Borrowed; NULL after the last. The caller may remove the returned
 * registration before the next call, but no other; with a cursor of the table any.
 */
struct registration *registrations_each(const struct registrations *table,
                                        struct registration_cursor *cursor);

/* Let registrations_next_key() begin with the first key. */
void registrations_restart_keys(struct registrations *table);

/*
 * Iterate over the keys with registrations. Registrations may be added and removed in between.
 * Returns false after the last. *ret_key is borrowed until a registration is removed. It may have
 * only registrations of ended clients.
 */
bool registrations_next_key(struct registrations *table, struct slice *ret_key);
