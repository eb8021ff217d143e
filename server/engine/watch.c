/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A key or client has a node as long as it has a registration. Each node has a number. So the hash
 * table of registrations hashes two numbers, 16 bytes, instead of two names.
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

struct watch_node {
        UT_hash_handle hh;            /* by name */
        UT_hash_handle by_connection; /* of a client */
        uint64_t number;
        uint64_t connection;                /* 0: in no table of connections */
        struct registration *registrations; /* utlist: the head's previous is the tail */
        uint64_t n_registrations;
        uint64_t n_bytes;                               /* of a client: the sum of watch_cost() */
        struct watch_node *next_ended, *previous_ended; /* of an ended client; utlist; NULL for others */
        bool is_subscribed;                             /* of a client, as are the following fields */
        int64_t idle_since_ns;                          /* if it is unreachable */
        struct watch_node *next_unreachable;
        struct watch_node *previous_unreachable; /* NULL: it is not unreachable */
        uint8_t name[];
};

static struct slice node_name(const struct watch_node *node) {
        return (struct slice){ node->name, node->hh.keylen };
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
        if (--registration->n_references == 0)
                free(registration);
        return NULL;
}

void registration_names(const struct registration *registration, struct buf *client, struct buf *key) {
        struct slice topic = { (const uint8_t *)registration->topic, registration->topic_length };
        struct slice names = { topic.data + strlen(TOPIC_NOTIFY_PREFIX "/"),
                               topic.length - strlen(TOPIC_NOTIFY_PREFIX "/") };
        struct slice rest;

        if (registration->key) {
                buf_append_slice(client, node_name(registration->client));
                buf_append_slice(key, node_name(registration->key));
                return;
        }

        /* the registration has ended */
        base16_append_decoded(client, slice_split(names, '/', &rest));
        slice_split(rest, '/', &rest); /* command */
        slice_split(rest, '/', &rest); /* notify */
        base16_append_decoded(key, rest);
}

void watch_init(struct watch *watch, const struct hash_key *hash_key) {
        *watch = (struct watch){ .hash_key = *hash_key };
}

bool watch_has_ended(const struct registration *registration) {
        return !registration->client || registration->client->previous_ended;
}

/* Return the next registration of the present shard, or NULL. */
static struct registration *each_of_shard(struct watch_cursor *cursor) {
        struct registration *registration = cursor->next;

        while (registration && watch_has_ended(registration))
                registration = registration->hh.next;
        cursor->next = registration ? registration->hh.next : NULL;
        return registration;
}

/* Begin the next shard. Returns false if there is none. */
static bool begin_shard(const struct watch *watch, struct watch_cursor *cursor) {
        if (cursor->n_shards_begun == WATCH_N_SHARDS)
                return false;

        cursor->next = watch->registrations[cursor->n_shards_begun++];
        return true;
}

struct registration *watch_each(const struct watch *watch, struct watch_cursor *cursor) {
        struct registration *registration;

        do
                registration = each_of_shard(cursor);
        while (!registration && begin_shard(watch, cursor));
        return registration;
}

void watch_deinit(struct watch *watch) {
        struct watch_cursor cursor = { 0 };
        struct registration *registration;

        while ((registration = watch_each(watch, &cursor)) || (registration = watch_of_ended(watch)))
                watch_remove(watch, registration);
}

uint64_t watch_cost(struct slice client, struct slice key, struct slice user) {
        return sizeof(struct registration) + topic_notify_length(client.length, key.length) + 1 +
               2 * sizeof(struct watch_node) + client.length + key.length + user.length + WATCH_OVERHEAD;
}

static struct watch_node *find_node(struct watch_node *const *table, uint64_t hash, struct slice name) {
        struct watch_node *node;

        HASH_FIND_BYHASHVALUE(hh, table[shard_of(hash)], name.data, name.length, hash_value(hash), node);
        return node;
}

static struct watch_node *find_client(const struct watch *watch, struct slice name) {
        return find_node(watch->clients, hash_of(watch, name.data, name.length), name);
}

/* Find the key or client, or create it. */
static int node_find_or_add(struct watch *watch, struct watch_node **table, uint64_t hash, struct slice name,
                            struct watch_node **ret_node) {
        struct watch_node *node = find_node(table, hash, name);

        if (!node) {
                node = calloc(1, sizeof(*node) + name.length);
                if (!node)
                        return -ENOMEM;

                memcpy(node->name, name.data, name.length);
                HASH_ADD_KEYPTR_BYHASHVALUE(hh, table[shard_of(hash)], node->name, (unsigned int)name.length,
                                            hash_value(hash), node);
                if (!node->hh.tbl) {
                        free(node);
                        return -ENOMEM;
                }
                node->number = watch->n_nodes++;
        }

        *ret_node = node;
        return 0;
}

/* Free the key or client if it has no registration. Accepts NULL. */
static void node_release(struct watch_node **table, struct watch_node *node) {
        if (!node || node->registrations)
                return;

        HASH_DEL(table[hash_shard(node->hh.hashv, WATCH_SHARD_BITS)], node);
        free(node);
}

static int registration_new(struct registration **ret_registration, struct slice client, struct slice key,
                            struct slice user) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct registration *registration;

        topic_append_notify(&topic, client, key);
        if (buf_failed(&topic))
                return -ENOMEM;

        registration = calloc(1, sizeof(*registration) + topic.length + 1 + user.length);
        if (!registration)
                return -ENOMEM;

        registration->n_references = 1;
        registration->topic_length = (uint32_t)topic.length;
        registration->user =
                (struct slice){ (uint8_t *)registration->topic + topic.length + 1, user.length };
        memcpy(registration->topic, topic.data, topic.length);
        if (user.length > 0)
                memcpy(registration->topic + topic.length + 1, user.data, user.length);
        *ret_registration = registration;
        return 0;
}

/* Add the client to the table of connections, unless it is there already. */
static int index_connection(struct watch *watch, struct watch_node *client, uint64_t connection) {
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

static void remove_connection(struct watch *watch, struct watch_node *client) {
        if (client->connection == 0)
                return;

        HASH_DELETE(by_connection,
                    watch->connections[hash_shard(client->by_connection.hashv, WATCH_SHARD_BITS)], client);
        client->connection = 0;
}

/*
 * Index the client by the connection of its remaining registrations. Restored ones may belong to a
 * former connection.
 */
static void reindex_connection(struct watch *watch, struct watch_node *client) {
        uint64_t connection = client->registrations ? client->registrations->connection : client->connection;

        if (connection == client->connection)
                return;

        remove_connection(watch, client);
        /*
         * If out of memory, EVENT_CONNECTION_CLOSED does not find the client. A later
         * EVENT_CONNECTIONS_RETAINED ends its registrations.
         */
        index_connection(watch, client, connection);
}

static void remove_unreachable(struct watch *watch, struct watch_node *client) {
        if (!client->previous_unreachable)
                return;

        DL_DELETE2(watch->unreachable, client, previous_unreachable, next_unreachable);
        client->previous_unreachable = NULL;
}

/* Clients are appended as time passes, so the list is in the order of idle_since_ns. */
static void append_unreachable(struct watch *watch, struct watch_node *client, int64_t now_ns) {
        client->idle_since_ns = now_ns;
        DL_APPEND2(watch->unreachable, client, previous_unreachable, next_unreachable);
}

/* Accepts NULL. */
static void client_release(struct watch *watch, struct watch_node *client) {
        if (client && !client->registrations) {
                remove_connection(watch, client);
                remove_unreachable(watch, client);
        }
        node_release(watch->clients, client);
}

/* Free the ended client if it has no registration. */
static void release_ended(struct watch *watch, struct watch_node *client) {
        if (client->registrations)
                return;

        DL_DELETE2(watch->ended, client, previous_ended, next_ended);
        free(client);
}

static uint64_t pair_hash(const struct watch *watch, const struct registration_pair *pair) {
        return hash_of(watch, pair, sizeof(*pair));
}

/* direction: 1 for a new registration, -1 for one that ends. */
static void count_bytes(struct watch *watch, const struct registration *registration, int direction) {
        uint64_t cost = watch_cost(node_name(registration->client), node_name(registration->key),
                                   registration->user);

        watch->n_bytes += (uint64_t)direction * cost;
        registration->client->n_bytes += (uint64_t)direction * cost;
        if (registration->client->previous_ended)
                watch->n_ended_bytes += (uint64_t)direction * cost;
}

/* Make the registration of this client and key. Returns NULL if out of memory. */
static struct registration *add_pair(struct watch *watch, struct watch_node *client, struct watch_node *key,
                                     struct slice user, uint64_t connection) {
        struct registration *registration;
        uint64_t hash;

        if (registration_new(&registration, node_name(client), node_name(key), user) < 0)
                return NULL;

        registration->key = key;
        registration->client = client;
        registration->connection = connection;
        registration->pair = (struct registration_pair){ key->number, client->number };
        hash = pair_hash(watch, &registration->pair);
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, watch->registrations[shard_of(hash)], &registration->pair,
                                    sizeof(registration->pair), hash_value(hash), registration);
        if (!registration->hh.tbl)
                return registration_unref(registration);

        DL_APPEND2(key->registrations, registration, previous_of_key, next_of_key);
        DL_APPEND2(client->registrations, registration, previous_of_client, next_of_client);
        key->n_registrations++;
        client->n_registrations++;
        watch->n_registrations++;
        count_bytes(watch, registration, 1);
        return registration;
}

struct watch_names watch_names(const struct watch *watch, struct slice client, struct slice key) {
        return (struct watch_names){ client, key, hash_of(watch, key.data, key.length) };
}

struct registration *watch_find(const struct watch *watch, struct watch_names names) {
        const struct watch_node *client_node = find_client(watch, names.client);
        const struct watch_node *key_node =
                client_node ? find_node(watch->keys, names.key_hash, names.key) : NULL;
        struct registration *registration;
        struct registration_pair pair;
        uint64_t hash;

        if (!key_node)
                return NULL;

        pair = (struct registration_pair){ key_node->number, client_node->number };
        hash = pair_hash(watch, &pair);
        HASH_FIND_BYHASHVALUE(hh, watch->registrations[shard_of(hash)], &pair, sizeof(pair),
                              hash_value(hash), registration);
        return registration;
}

struct registration *watch_add(struct watch *watch, struct watch_names names, struct slice user,
                               uint64_t connection) {
        uint64_t client_hash = hash_of(watch, names.client.data, names.client.length);
        struct watch_node *key_node = NULL, *client_node = NULL;
        struct registration *registration = NULL;

        if (node_find_or_add(watch, watch->keys, names.key_hash, names.key, &key_node) == 0 &&
            node_find_or_add(watch, watch->clients, client_hash, names.client, &client_node) == 0 &&
            index_connection(watch, client_node, connection) == 0)
                registration = add_pair(watch, client_node, key_node, user, connection);
        if (!registration) {
                node_release(watch->keys, key_node);
                client_release(watch, client_node);
        }
        return registration;
}

void watch_remove(struct watch *watch, struct registration *registration) {
        struct watch_node *key = registration->key;
        struct watch_node *client = registration->client;

        count_bytes(watch, registration, -1);
        watch->n_registrations--;
        watch->n_ended_registrations -= watch_has_ended(registration);
        if (watch->check.next == registration)
                watch->check.next = registration->hh.next;
        HASH_DEL(watch->registrations[hash_shard(registration->hh.hashv, WATCH_SHARD_BITS)], registration);
        DL_DELETE2(key->registrations, registration, previous_of_key, next_of_key);
        DL_DELETE2(client->registrations, registration, previous_of_client, next_of_client);
        key->n_registrations--;
        client->n_registrations--;
        registration->key = NULL;
        registration->client = NULL;
        registration_unref(registration);

        if (watch->next_key == key && !key->registrations)
                watch->next_key = key->hh.next;
        node_release(watch->keys, key);
        if (client->previous_ended) {
                release_ended(watch, client);
                return;
        }
        reindex_connection(watch, client);
        client_release(watch, client);
}

void watch_end_client(struct watch *watch, struct registration *registration) {
        struct watch_node *client = registration->client;

        remove_connection(watch, client);
        remove_unreachable(watch, client);
        HASH_DEL(watch->clients[hash_shard(client->hh.hashv, WATCH_SHARD_BITS)], client);
        DL_APPEND2(watch->ended, client, previous_ended, next_ended);
        watch->n_ended_registrations += client->n_registrations;
        watch->n_ended_bytes += client->n_bytes;
}

struct registration *watch_of_ended(const struct watch *watch) {
        return watch->ended ? watch->ended->registrations : NULL;
}

bool watch_is_registered_again(const struct watch *watch, const struct registration *ended) {
        return watch_find(watch, watch_names(watch, node_name(ended->client), node_name(ended->key)));
}

struct registration *watch_of_key(const struct watch *watch, uint64_t hash, struct slice key) {
        const struct watch_node *node = find_node(watch->keys, hash, key);
        struct registration *registration = node ? node->registrations : NULL;

        return registration && watch_has_ended(registration) ? watch_next_of_key(registration)
                                                             : registration;
}

struct registration *watch_next_of_key(const struct registration *registration) {
        struct registration *next = registration->next_of_key;

        while (next && watch_has_ended(next))
                next = next->next_of_key;
        return next;
}

struct registration *watch_of_client(const struct watch *watch, struct slice client) {
        const struct watch_node *node = find_client(watch, client);

        return node ? node->registrations : NULL;
}

struct registration *watch_of_connection(const struct watch *watch, uint64_t connection) {
        uint64_t hash = hash_of(watch, &connection, sizeof(connection));
        const struct watch_node *client;

        HASH_FIND_BYHASHVALUE(by_connection, watch->connections[shard_of(hash)], &connection,
                              sizeof(connection), hash_value(hash), client);
        return client ? client->registrations : NULL;
}

bool watch_has_connections(const struct watch *watch) {
        for (size_t i = 0; i < WATCH_N_SHARDS; i++)
                if (watch->connections[i])
                        return true;
        return false;
}

void watch_set_subscribed(struct watch *watch, struct registration *registration) {
        registration->client->is_subscribed = true;
        remove_unreachable(watch, registration->client);
}

bool watch_is_subscribed(const struct registration *registration) {
        return registration->client->is_subscribed;
}

void watch_set_unreachable(struct watch *watch, struct registration *registration, int64_t now_ns) {
        if (!registration->client->previous_unreachable)
                append_unreachable(watch, registration->client, now_ns);
}

void watch_restart_idle(struct watch *watch, struct slice name, int64_t now_ns) {
        struct watch_node *client = watch->unreachable ? find_client(watch, name) : NULL;

        if (!client || !client->previous_unreachable)
                return;

        remove_unreachable(watch, client);
        append_unreachable(watch, client, now_ns);
}

struct registration *watch_longest_idle(const struct watch *watch) {
        return watch->unreachable ? watch->unreachable->registrations : NULL;
}

int64_t watch_longest_idle_since(const struct watch *watch) {
        return watch->unreachable ? watch->unreachable->idle_since_ns : INT64_MAX;
}

struct watch_usage watch_usage_of_client(const struct watch *watch, struct slice client) {
        const struct watch_node *node = find_client(watch, client);

        return node ? (struct watch_usage){ node->n_registrations, node->n_bytes }
                    : (struct watch_usage){ 0 };
}

void watch_restart_keys(struct watch *watch) {
        watch->next_key = NULL;
        watch->n_key_shards_begun = 0;
}

bool watch_next_key(struct watch *watch, struct slice *ret_key) {
        while (!watch->next_key && watch->n_key_shards_begun < WATCH_N_SHARDS)
                watch->next_key = watch->keys[watch->n_key_shards_begun++];
        if (!watch->next_key)
                return false;

        *ret_key = node_name(watch->next_key);
        watch->next_key = watch->next_key->hh.next;
        return true;
}
