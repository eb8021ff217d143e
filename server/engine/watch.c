/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A key or client exists as long as it has a registration. Each has a number, so that a registration is hashed by 16 bytes
 * instead of both names.
 */

#include "engine/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"
#include "base/base16.h"
#include "base/cleanup.h"
#include "protocol/topics.h"

/* Allocator headers and shares of buckets of a registration, its key and its client. */
#define WATCH_OVERHEAD (3 * (16 + 8))

struct watched {
        UT_hash_handle hh;            /* by name */
        UT_hash_handle by_connection; /* of a client */
        uint64_t number;
        uint64_t connection;                /* 0: in no table of connections */
        struct registration *registrations; /* utlist: the head's previous is the tail */
        uint8_t name[];
};

static struct slice watched_name(const struct watched *watched) {
        return (struct slice){ watched->name, watched->hh.keylen };
}

static uint64_t hash_of(const struct watch *watch, const void *bytes, size_t length) {
        return hash_bytes(&watch->hash_key, (struct slice){ bytes, length });
}

static size_t shard_of(uint64_t hash) {
        return hash_shard(hash_value(hash), WATCH_SHARD_BITS);
}

struct registration *registration_ref(struct registration *registration) {
        registration->n_references++;
        return registration;
}

struct registration *registration_unref(struct registration *registration) {
        if (!registration)
                return NULL;

        ASSERT(registration->n_references > 0);
        if (--registration->n_references == 0) {
                free((void *)registration->user.data);
                free(registration);
        }
        return NULL;
}

void registration_names(const struct registration *registration, struct buf *client, struct buf *key) {
        struct slice topic = { (const uint8_t *)registration->topic, registration->topic_length };
        struct slice names = { topic.data + strlen(TOPIC_NOTIFY_PREFIX "/"),
                               topic.length - strlen(TOPIC_NOTIFY_PREFIX "/") };
        struct slice rest;

        base16_append_decoded(client, slice_split(names, '/', &rest));
        slice_split(rest, '/', &rest); /* command */
        slice_split(rest, '/', &rest); /* notify */
        base16_append_decoded(key, rest);
}

bool registration_is_of(const struct registration *registration, struct slice client) {
        const char *name = registration->topic + strlen(TOPIC_NOTIFY_PREFIX "/");

        for (size_t i = 0; i < client.length; i++, name += 2)
                if (!base16_is_byte(name, client.data[i]))
                        return false;
        return *name == '/';
}

void watch_init(struct watch *watch, const struct hash_key *hash_key) {
        *watch = (struct watch){ .hash_key = *hash_key };
}

struct registration *watch_each_of_shard(struct watch_cursor *cursor) {
        struct registration *registration = cursor->next;

        cursor->next = registration ? registration->hh.next : NULL;
        return registration;
}

bool watch_begin_shard(const struct watch *watch, struct watch_cursor *cursor) {
        if (cursor->n_shards_begun == WATCH_N_SHARDS)
                return false;

        cursor->next = watch->registrations[cursor->n_shards_begun++];
        return true;
}

struct registration *watch_each(const struct watch *watch, struct watch_cursor *cursor) {
        while (!cursor->next)
                if (!watch_begin_shard(watch, cursor))
                        return NULL;
        return watch_each_of_shard(cursor);
}

void watch_deinit(struct watch *watch) {
        struct watch_cursor cursor = { 0 };
        struct registration *registration;

        while ((registration = watch_each(watch, &cursor)))
                watch_remove(watch, registration);
}

uint64_t watch_cost(struct slice client, struct slice key) {
        return sizeof(struct registration) + topic_notify_length(client.length, key.length) + 1 +
               2 * sizeof(struct watched) + client.length + key.length + WATCH_OVERHEAD;
}

static struct watched *find_named(struct watched *const *table, uint64_t hash, struct slice name) {
        struct watched *watched;

        HASH_FIND_BYHASHVALUE(hh, table[shard_of(hash)], name.data, name.length, hash_value(hash), watched);
        return watched;
}

static struct watched *find_client(const struct watch *watch, struct slice name) {
        return find_named(watch->clients, hash_of(watch, name.data, name.length), name);
}

static struct watched *find_key(const struct watch *watch, struct slice name) {
        return find_named(watch->keys, hash_of(watch, name.data, name.length), name);
}

/* Find the key or client, or create it. */
static int watched_get(struct watch *watch, struct watched **table, struct slice name,
                       struct watched **ret_watched) {
        uint64_t hash = hash_of(watch, name.data, name.length);
        struct watched *watched = find_named(table, hash, name);

        if (!watched) {
                watched = calloc(1, sizeof(*watched) + name.length);
                if (!watched)
                        return -ENOMEM;

                memcpy(watched->name, name.data, name.length);
                HASH_ADD_KEYPTR_BYHASHVALUE(hh, table[shard_of(hash)], watched->name,
                                            (unsigned int)name.length, hash_value(hash), watched);
                if (!watched->hh.tbl) {
                        free(watched);
                        return -ENOMEM;
                }
                watched->number = watch->n_watched++;
        }

        *ret_watched = watched;
        return 0;
}

/* Free the key or client if it has no registration. Accepts NULL. */
static void watched_release(struct watched **table, struct watched *watched) {
        if (!watched || watched->registrations)
                return;

        HASH_DEL(table[hash_shard(watched->hh.hashv, WATCH_SHARD_BITS)], watched);
        free(watched);
}

static int registration_new(struct registration **ret_registration, struct slice client, struct slice key) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct registration *registration;

        topic_append_notify(&topic, client, key);
        if (buf_failed(&topic))
                return -ENOMEM;

        registration = calloc(1, sizeof(*registration) + topic.length + 1);
        if (!registration)
                return -ENOMEM;

        registration->n_references = 1;
        registration->topic_length = (uint32_t)topic.length;
        memcpy(registration->topic, topic.data, topic.length);
        *ret_registration = registration;
        return 0;
}

/* Add a new client to the table of connections. */
static int index_connection(struct watch *watch, struct watched *client, uint64_t connection) {
        uint64_t hash = hash_of(watch, &connection, sizeof(connection));

        if (connection == 0 || client->connection != 0)
                return 0;

        client->connection = connection;
        HASH_ADD_KEYPTR_BYHASHVALUE(by_connection, watch->connections[shard_of(hash)], &client->connection,
                                    sizeof(client->connection), hash_value(hash), client);
        if (!client->by_connection.tbl) {
                client->connection = 0;
                return -ENOMEM;
        }
        return 0;
}

static void remove_connection(struct watch *watch, struct watched *client) {
        if (client->connection == 0)
                return;

        HASH_DELETE(by_connection,
                    watch->connections[hash_shard(client->by_connection.hashv, WATCH_SHARD_BITS)], client);
        client->connection = 0;
}

/* Index the client by the connection of its remaining registrations. Restored ones may belong to a former connection. */
static void follow_connection(struct watch *watch, struct watched *client) {
        uint64_t connection = client->registrations ? client->registrations->connection : client->connection;

        if (connection == client->connection)
                return;

        remove_connection(watch, client);
        index_connection(watch, client,
                         connection); /* if out of memory, the next welcome ends the registrations */
}

/* Accepts NULL. */
static void release_client(struct watch *watch, struct watched *client) {
        if (client && !client->registrations)
                remove_connection(watch, client);
        watched_release(watch->clients, client);
}

static uint64_t pair_hash(const struct watch *watch, const struct watched_pair *pair) {
        return hash_of(watch, pair, sizeof(*pair));
}

static int pair_up(struct watch *watch, struct watched *client, struct watched *key, uint64_t connection) {
        struct registration *registration;
        uint64_t hash;
        int r;

        r = registration_new(&registration, watched_name(client), watched_name(key));
        if (r < 0)
                return r;

        registration->key = key;
        registration->client = client;
        registration->connection = connection;
        registration->pair = (struct watched_pair){ key->number, client->number };
        hash = pair_hash(watch, &registration->pair);
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, watch->registrations[shard_of(hash)], &registration->pair,
                                    sizeof(registration->pair), hash_value(hash), registration);
        if (!registration->hh.tbl) {
                registration_unref(registration);
                return -ENOMEM;
        }

        DL_APPEND2(key->registrations, registration, previous_of_key, next_of_key);
        DL_APPEND2(client->registrations, registration, previous_of_client, next_of_client);
        watch->n_registrations++;
        watch->n_bytes += watch_cost(watched_name(client), watched_name(key));
        return 0;
}

int watch_add(struct watch *watch, struct slice client, struct slice key, uint64_t connection) {
        struct watched *watched_key = NULL, *watched_client = NULL;
        int r;

        r = watched_get(watch, watch->keys, key, &watched_key);
        if (r == 0)
                r = watched_get(watch, watch->clients, client, &watched_client);
        if (r == 0)
                r = index_connection(watch, watched_client, connection);
        if (r == 0)
                r = pair_up(watch, watched_client, watched_key, connection);
        if (r < 0) {
                watched_release(watch->keys, watched_key);
                release_client(watch, watched_client);
        }
        return r;
}

struct registration *watch_find(const struct watch *watch, struct slice client, struct slice key) {
        const struct watched *watched_key = find_key(watch, key);
        const struct watched *watched_client = find_client(watch, client);
        struct registration *registration;
        struct watched_pair pair;
        uint64_t hash;

        if (!watched_key || !watched_client)
                return NULL;

        pair = (struct watched_pair){ watched_key->number, watched_client->number };
        hash = pair_hash(watch, &pair);
        HASH_FIND_BYHASHVALUE(hh, watch->registrations[shard_of(hash)], &pair, sizeof(pair),
                              hash_value(hash), registration);
        return registration;
}

int watch_add_of_user(struct watch *watch, struct slice client, struct slice user, struct slice key,
                      uint64_t connection) {
        uint8_t *text = NULL;
        struct registration *registration;
        int r;

        if (user.length > 0) {
                text = malloc(user.length);
                if (!text)
                        return -ENOMEM;
                memcpy(text, user.data, user.length);
        }

        r = watch_add(watch, client, key, connection);
        if (r < 0) {
                free(text);
                return r;
        }
        registration = watch_find(watch, client, key);
        registration->user = (struct slice){ text, user.length };
        watch->n_bytes += user.length;
        return 0;
}

void watch_remove(struct watch *watch, struct registration *registration) {
        struct watched *key = registration->key;
        struct watched *client = registration->client;

        watch->n_bytes -= watch_cost(watched_name(client), watched_name(key)) + registration->user.length;
        watch->n_registrations--;
        HASH_DEL(watch->registrations[hash_shard(registration->hh.hashv, WATCH_SHARD_BITS)], registration);
        DL_DELETE2(key->registrations, registration, previous_of_key, next_of_key);
        DL_DELETE2(client->registrations, registration, previous_of_client, next_of_client);
        registration->key = NULL;
        registration->client = NULL;
        registration_unref(registration);

        watched_release(watch->keys, key);
        follow_connection(watch, client);
        release_client(watch, client);
}

struct registration *watch_of_key(const struct watch *watch, uint64_t hash, struct slice key) {
        const struct watched *watched = find_named(watch->keys, hash, key);

        return watched ? watched->registrations : NULL;
}

struct registration *watch_of_client(const struct watch *watch, struct slice client) {
        const struct watched *watched = find_client(watch, client);

        return watched ? watched->registrations : NULL;
}

struct registration *watch_of_connection(const struct watch *watch, uint64_t connection) {
        uint64_t hash = hash_of(watch, &connection, sizeof(connection));
        const struct watched *client;

        HASH_FIND_BYHASHVALUE(by_connection, watch->connections[shard_of(hash)], &connection,
                              sizeof(connection), hash_value(hash), client);
        return client ? client->registrations : NULL;
}

uint64_t watch_n_registrations(const struct watch *watch) {
        return watch->n_registrations;
}
