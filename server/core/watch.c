/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys, clients, and pairs of both. The pairs' key is the two pointers, so that neither name is stored again. A
 * key or a client is there as long as it has a registration; a client is found by its connection too.
 */

#include "core/watch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/assert.h"
#include "common/cleanup.h"
#include "common/topics.h"

#define WATCH_SHARD_BITS 8

/* Allocator headers and table shares of a registration, its key and its client. */
#define WATCH_OVERHEAD (3 * (16 + TABLE_ITEM_OVERHEAD))

struct watched {
        uint64_t connection;
        struct registration *registrations; /* utlist: the head's previous is the tail */
        size_t name_length;
        uint8_t name[];
};

/* The pairs' key, as it lies in a registration. */
#define PAIR_LENGTH (2 * sizeof(void *))
_Static_assert(offsetof(struct registration, client) == offsetof(struct registration, key) + sizeof(void *),
               "a pair is two adjacent pointers");

static struct slice pair_of(const void *registration) {
        return (struct slice){ (const uint8_t *)&((const struct registration *)registration)->key,
                               PAIR_LENGTH };
}

static struct slice watched_name(const void *watched) {
        return (struct slice){ ((const struct watched *)watched)->name,
                               ((const struct watched *)watched)->name_length };
}

static struct slice connection_slice(const uint64_t *connection) {
        return (struct slice){ (const uint8_t *)connection, sizeof(*connection) };
}

static struct slice watched_connection(const void *watched) {
        return connection_slice(&((const struct watched *)watched)->connection);
}

/* What stands in a table, by the key that the table finds it by. */
static uint32_t hash_of(const struct watch *watch, const struct table *table, const void *item) {
        return table_hash(&watch->hash_key, table->key(item));
}

static int add(const struct watch *watch, struct table *table, void *item) {
        return table_add(table, hash_of(watch, table, item), item);
}

static void remove_from(const struct watch *watch, struct table *table, const void *item) {
        table_remove(table, hash_of(watch, table, item), item);
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

int watch_init(struct watch *watch, const struct hash_key *hash_key) {
        *watch = (struct watch){ .hash_key = *hash_key };

        if (table_init(&watch->keys, WATCH_SHARD_BITS, watched_name) < 0 ||
            table_init(&watch->clients, WATCH_SHARD_BITS, watched_name) < 0 ||
            table_init(&watch->connections, WATCH_SHARD_BITS, watched_connection) < 0 ||
            table_init(&watch->registrations, WATCH_SHARD_BITS, pair_of) < 0)
                return -ENOMEM;
        return 0;
}

struct registration *watch_each(const struct watch *watch, struct table_cursor *cursor) {
        return table_each(&watch->registrations, cursor);
}

void watch_deinit(struct watch *watch) {
        struct table_cursor cursor = { 0 };
        struct registration *registration;

        if (watch->registrations.shards)
                while ((registration = watch_each(watch, &cursor)))
                        watch_remove(watch, registration);

        table_deinit(&watch->keys);
        table_deinit(&watch->clients);
        table_deinit(&watch->connections);
        table_deinit(&watch->registrations);
}

uint64_t watch_cost(struct slice client, struct slice key) {
        return sizeof(struct registration) + topic_notify_length(client.length, key.length) + 1 +
               2 * sizeof(struct watched) + client.length + key.length + WATCH_OVERHEAD;
}

static struct watched *watched_find(const struct watch *watch, const struct table *table,
                                    struct slice name) {
        if (table->n_items == 0)
                return NULL; /* most stores watch nothing: spare them the hash */
        return table_find(table, table_hash(&watch->hash_key, name), name);
}

/* Finds it or makes it. */
static int watched_get(struct watch *watch, struct table *table, struct slice name,
                       struct watched **ret_watched) {
        struct watched *watched = watched_find(watch, table, name);
        int r;

        if (!watched) {
                watched = calloc(1, sizeof(*watched) + name.length);
                if (!watched)
                        return -ENOMEM;

                watched->name_length = name.length;
                memcpy(watched->name, name.data, name.length);
                r = add(watch, table, watched);
                if (r < 0) {
                        free(watched);
                        return r;
                }
        }

        *ret_watched = watched;
        return 0;
}

/* Frees it if nothing is registered under it. Accepts NULL. */
static void watched_release(const struct watch *watch, struct table *table, struct watched *watched) {
        if (!watched || watched->registrations)
                return;

        remove_from(watch, table, watched);
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

/* Lets a client that has just been made be found by its connection. */
static int index_connection(struct watch *watch, struct watched *client, uint64_t connection) {
        int r;

        if (connection == 0 || client->connection != 0)
                return 0;

        client->connection = connection;
        r = add(watch, &watch->connections, client);
        if (r < 0)
                client->connection = 0;
        return r;
}

/* Restored registrations may be of a connection that ended before; once these go, the others' is the client's. */
static void follow_connection(struct watch *watch, struct watched *client) {
        uint64_t connection = client->registrations ? client->registrations->connection : client->connection;

        if (connection == client->connection)
                return;

        if (client->connection != 0)
                remove_from(watch, &watch->connections, client);
        client->connection = 0;
        index_connection(watch, client, connection); /* out of memory the next welcome ends them */
}

static void release_client(struct watch *watch, struct watched *client) {
        if (client && !client->registrations && client->connection != 0)
                remove_from(watch, &watch->connections, client);
        watched_release(watch, &watch->clients, client);
}

static int pair_up(struct watch *watch, struct watched *client, struct watched *key, uint64_t connection) {
        struct registration *registration;
        int r;

        r = registration_new(&registration, watched_name(client), watched_name(key));
        if (r < 0)
                return r;

        registration->key = key;
        registration->client = client;
        registration->connection = connection;
        r = add(watch, &watch->registrations, registration);
        if (r < 0) {
                registration_unref(registration);
                return r;
        }

        DL_APPEND2(key->registrations, registration, previous_of_key, next_of_key);
        DL_APPEND2(client->registrations, registration, previous_of_client, next_of_client);
        watch->n_bytes += watch_cost(watched_name(client), watched_name(key));
        return 0;
}

int watch_add(struct watch *watch, struct slice client, struct slice key, uint64_t connection) {
        struct watched *watched_key = NULL, *watched_client = NULL;
        int r;

        r = watched_get(watch, &watch->keys, key, &watched_key);
        if (r == 0)
                r = watched_get(watch, &watch->clients, client, &watched_client);
        if (r == 0)
                r = index_connection(watch, watched_client, connection);
        if (r == 0)
                r = pair_up(watch, watched_client, watched_key, connection);
        if (r < 0) {
                watched_release(watch, &watch->keys, watched_key);
                release_client(watch, watched_client);
        }
        return r;
}

struct registration *watch_find(const struct watch *watch, struct slice client, struct slice key) {
        struct registration pair = {
                .key = watched_find(watch, &watch->keys, key),
                .client = watched_find(watch, &watch->clients, client),
        };

        if (!pair.key || !pair.client)
                return NULL;
        return table_find(&watch->registrations, hash_of(watch, &watch->registrations, &pair),
                          pair_of(&pair));
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
        remove_from(watch, &watch->registrations, registration);
        DL_DELETE2(key->registrations, registration, previous_of_key, next_of_key);
        DL_DELETE2(client->registrations, registration, previous_of_client, next_of_client);
        registration->key = NULL;
        registration->client = NULL;
        registration_unref(registration);

        watched_release(watch, &watch->keys, key);
        follow_connection(watch, client);
        release_client(watch, client);
}

struct registration *watch_of_key(const struct watch *watch, struct slice key) {
        struct watched *watched = watched_find(watch, &watch->keys, key);

        return watched ? watched->registrations : NULL;
}

struct registration *watch_of_client(const struct watch *watch, struct slice client) {
        struct watched *watched = watched_find(watch, &watch->clients, client);

        return watched ? watched->registrations : NULL;
}

struct registration *watch_of_connection(const struct watch *watch, uint64_t connection) {
        struct slice key = connection_slice(&connection);
        struct watched *client = table_find(&watch->connections, table_hash(&watch->hash_key, key), key);

        return client ? client->registrations : NULL;
}

uint64_t watch_n_registrations(const struct watch *watch) {
        return watch->registrations.n_items;
}
