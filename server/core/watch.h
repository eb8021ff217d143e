/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/table.h"

/*
 * Who wants to be told of which key: KEYNOTIFY's registrations (protocol section 8), found by key, by client,
 * and by both. A registration is one client's interest in one key; it needs no such key to exist.
 */

/* A key, or a client: its name and the registrations under it. */
struct watched;

/*
 * Reference counted: one that has ended stays readable for the notifications that have yet to leave. The
 * topic is spelled out once, so that telling a client formats nothing.
 */
struct registration {
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

struct watch {
        struct table keys;
        struct table clients;
        struct table connections; /* of clients whose connection has a number */
        struct table registrations;
        struct hash_key hash_key;
        uint64_t n_bytes; /* what the registrations cost: watch_cost() */
};

int watch_init(struct watch *watch, const struct hash_key *hash_key);
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

/* The registrations of one key, oldest first; follow next_of_key. Borrowed; NULL where there are none. */
struct registration *watch_of_key(const struct watch *watch, struct slice key);

/* The registrations of one client, oldest first; follow next_of_client. Borrowed. */
struct registration *watch_of_client(const struct watch *watch, struct slice client);
struct registration *watch_of_connection(const struct watch *watch, uint64_t connection);

/* Every registration, in no order, as table_each(). Borrowed; NULL ends. */
struct registration *watch_each(const struct watch *watch, struct table_cursor *cursor);

uint64_t watch_n_registrations(const struct watch *watch);
