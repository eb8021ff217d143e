/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A key or client has a node as long as it has a registration. Each node has a number. So the hash
 * table of registrations hashes two numbers, 16 bytes, instead of two names.
 */

#include "engine/registrations.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/assert.h"

/* Allocator headers and shares of buckets of a registration, its key and its client. */
#define REGISTRATION_OVERHEAD (3 * (16 + 8))

struct registration_node {
        UT_hash_handle hh;            /* by name */
        UT_hash_handle by_connection; /* of a client */
        uint64_t number;
        uint64_t connection;                /* 0: in no table of connections */
        struct registration *registrations; /* utlist: the head's previous is the tail */
        uint64_t n_registrations;           /* of a client */
        uint64_t n_bytes; /* of a client: registration_cost(); of a key: registration_recipient_bytes() */
        struct registration_node *next_ended,
                *previous_ended; /* of an ended client; utlist; NULL for others */
        bool is_subscribed;      /* of a client, as are the following fields */
        int64_t idle_since_ns;   /* if it is unreachable */
        struct registration_node *next_unreachable;
        struct registration_node *previous_unreachable; /* NULL: it is not unreachable */
        uint8_t name[];
};

static struct slice node_name(const struct registration_node *node) {
        return (struct slice){ node->name, node->hh.keylen };
}

static uint64_t keyed_hash(const struct registrations *table, const void *bytes, size_t length) {
        return hash_bytes(&table->hash_key, (struct slice){ bytes, length });
}

static size_t shard_of(uint64_t hash) {
        return hash_shard(hash_value(hash), REGISTRATIONS_SHARD_BITS);
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

void registrations_init(struct registrations *table, const struct hash_key *hash_key) {
        *table = (struct registrations){ .hash_key = *hash_key };
}

bool registration_has_ended(const struct registration *registration) {
        return !registration->client || registration->client->previous_ended;
}

/* Return the next registration of the present shard, or NULL. */
static struct registration *each_of_shard(struct registration_cursor *cursor) {
        struct registration *registration = cursor->next;

        while (registration && registration_has_ended(registration))
                registration = registration->hh.next;
        cursor->next = registration ? registration->hh.next : NULL;
        return registration;
}

/* Begin the next shard. Returns false if there is none. */
static bool begin_shard(const struct registrations *table, struct registration_cursor *cursor) {
        if (cursor->n_shards_begun == REGISTRATIONS_N_SHARDS)
                return false;

        cursor->next = table->pairs[cursor->n_shards_begun++];
        return true;
}

struct registration *registrations_each(const struct registrations *table,
                                        struct registration_cursor *cursor) {
        struct registration *registration;

        do
                registration = each_of_shard(cursor);
        while (!registration && begin_shard(table, cursor));
        return registration;
}

void registrations_deinit(struct registrations *table) {
        struct registration_cursor cursor = { 0 };
        struct registration *registration;

        while ((registration = registrations_each(table, &cursor)) ||
               (registration = registrations_of_ended(table)))
                registrations_remove(table, registration);
}

uint64_t registration_cost(struct slice client, struct slice key, struct slice user) {
        return sizeof(struct registration) + 2 * sizeof(struct registration_node) +
               2 * (client.length + key.length) + user.length + REGISTRATION_OVERHEAD;
}

uint64_t registration_recipient_bytes(struct slice client, uint64_t connection) {
        return 8 + 2 + (connection == 0 ? client.length : 0);
}

static struct registration_node *find_node(struct registration_node *const *nodes, uint64_t hash,
                                           struct slice name) {
        struct registration_node *node;

        HASH_FIND_BYHASHVALUE(hh, nodes[shard_of(hash)], name.data, name.length, hash_value(hash), node);
        return node;
}

static struct registration_node *find_client(const struct registrations *table, struct slice name) {
        return find_node(table->clients, keyed_hash(table, name.data, name.length), name);
}

/* Find the key or client, or create it. */
static int find_or_add_node(struct registrations *table, struct registration_node **nodes, uint64_t hash,
                            struct slice name, struct registration_node **ret_node) {
        struct registration_node *node = find_node(nodes, hash, name);

        if (!node) {
                node = calloc(1, sizeof(*node) + name.length);
                if (!node)
                        return -ENOMEM;

                memcpy(node->name, name.data, name.length);
                HASH_ADD_KEYPTR_BYHASHVALUE(hh, nodes[shard_of(hash)], node->name, (unsigned int)name.length,
                                            hash_value(hash), node);
                if (!node->hh.tbl) {
                        free(node);
                        return -ENOMEM;
                }
                node->number = table->n_nodes++;
        }

        *ret_node = node;
        return 0;
}

/* Free the key or client if it has no registration. Accepts NULL. */
static void release_node(struct registration_node **nodes, struct registration_node *node) {
        if (!node || node->registrations)
                return;

        HASH_DEL(nodes[hash_shard(node->hh.hashv, REGISTRATIONS_SHARD_BITS)], node);
        free(node);
}

/* Returns NULL if out of memory. */
static struct registration *create_registration(struct slice client, struct slice key, struct slice user) {
        struct registration *registration =
                calloc(1, sizeof(*registration) + client.length + key.length + user.length);
        uint8_t *at;

        if (!registration)
                return NULL;

        at = registration->bytes;
        registration->n_references = 1;
        registration->client_id = (struct slice){ at, client.length };
        at = mempcpy(at, client.data, client.length);
        registration->key_name = (struct slice){ at, key.length };
        at = mempcpy(at, key.data, key.length);
        registration->user = (struct slice){ at, user.length };
        if (user.length > 0)
                memcpy(at, user.data, user.length);
        return registration;
}

/* Add the client to the table of connections, unless it is there already. */
static int index_connection(struct registrations *table, struct registration_node *client,
                            uint64_t connection) {
        uint64_t hash = keyed_hash(table, &connection, sizeof(connection));

        if (connection == 0 || client->connection != 0)
                return 0;

        client->connection = connection;
        HASH_ADD_KEYPTR_BYHASHVALUE(by_connection, table->connections[shard_of(hash)], &client->connection,
                                    sizeof(client->connection), hash_value(hash), client);
        if (!client->by_connection.tbl) {
                client->connection = 0;
                return -ENOMEM;
        }
        return 0;
}

static void remove_connection(struct registrations *table, struct registration_node *client) {
        if (client->connection == 0)
                return;

        HASH_DELETE(by_connection,
                    table->connections[hash_shard(client->by_connection.hashv, REGISTRATIONS_SHARD_BITS)],
                    client);
        client->connection = 0;
}

/*
 * Index the client by the connection of its remaining registrations. Restored ones may belong to a
 * former connection.
 */
static void reindex_connection(struct registrations *table, struct registration_node *client) {
        uint64_t connection = client->registrations ? client->registrations->connection : client->connection;

        if (connection == client->connection)
                return;

        remove_connection(table, client);
        /*
         * If out of memory, EVENT_CONNECTION_CLOSED does not find the client. A later
         * EVENT_CONNECTIONS_RETAINED ends its registrations.
         */
        index_connection(table, client, connection);
}

static void remove_unreachable(struct registrations *table, struct registration_node *client) {
        if (!client->previous_unreachable)
                return;

        DL_DELETE2(table->unreachable, client, previous_unreachable, next_unreachable);
        client->previous_unreachable = NULL;
}

/* Clients are appended as time passes, so the list is in the order of idle_since_ns. */
static void append_unreachable(struct registrations *table, struct registration_node *client,
                               int64_t now_ns) {
        client->idle_since_ns = now_ns;
        DL_APPEND2(table->unreachable, client, previous_unreachable, next_unreachable);
}

/* Accepts NULL. */
static void release_client(struct registrations *table, struct registration_node *client) {
        if (client && !client->registrations) {
                remove_connection(table, client);
                remove_unreachable(table, client);
        }
        release_node(table->clients, client);
}

/* Free the ended client if it has no registration. */
static void release_ended(struct registrations *table, struct registration_node *client) {
        if (client->registrations)
                return;

        DL_DELETE2(table->ended, client, previous_ended, next_ended);
        free(client);
}

static uint64_t pair_hash(const struct registrations *table, const struct registration_pair *pair) {
        return keyed_hash(table, pair, sizeof(*pair));
}

/* direction: 1 for a new registration, -1 for one that ends. */
static void count_registration_bytes(struct registrations *table, const struct registration *registration,
                                     int direction) {
        uint64_t cost =
                registration_cost(registration->client_id, registration->key_name, registration->user);

        table->n_bytes += (uint64_t)direction * cost;
        registration->client->n_bytes += (uint64_t)direction * cost;
        registration->key->n_bytes +=
                (uint64_t)direction *
                registration_recipient_bytes(registration->client_id, registration->connection);
}

/* Make the registration of this client and key. Returns NULL if out of memory. */
static struct registration *add_pair(struct registrations *table, struct registration_node *client,
                                     struct registration_node *key, struct slice user, uint64_t connection) {
        struct registration *registration = create_registration(node_name(client), node_name(key), user);
        uint64_t hash;

        if (!registration)
                return NULL;

        registration->key = key;
        registration->client = client;
        registration->connection = connection;
        registration->pair = (struct registration_pair){ key->number, client->number };
        hash = pair_hash(table, &registration->pair);
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->pairs[shard_of(hash)], &registration->pair,
                                    sizeof(registration->pair), hash_value(hash), registration);
        if (!registration->hh.tbl)
                return registration_unref(registration);

        DL_APPEND2(key->registrations, registration, previous_of_key, next_of_key);
        DL_APPEND2(client->registrations, registration, previous_of_client, next_of_client);
        client->n_registrations++;
        table->n_registrations++;
        count_registration_bytes(table, registration, 1);
        return registration;
}

struct registration_names registrations_names(const struct registrations *table, struct slice client,
                                              struct slice key) {
        return (struct registration_names){ client, key, keyed_hash(table, key.data, key.length) };
}

struct registration *registrations_find(const struct registrations *table, struct registration_names names) {
        const struct registration_node *client_node = find_client(table, names.client);
        const struct registration_node *key_node =
                client_node ? find_node(table->keys, names.key_hash, names.key) : NULL;
        struct registration *registration;
        struct registration_pair pair;
        uint64_t hash;

        if (!key_node)
                return NULL;

        pair = (struct registration_pair){ key_node->number, client_node->number };
        hash = pair_hash(table, &pair);
        HASH_FIND_BYHASHVALUE(hh, table->pairs[shard_of(hash)], &pair, sizeof(pair), hash_value(hash),
                              registration);
        return registration;
}

struct registration *registrations_add(struct registrations *table, struct registration_names names,
                                       struct slice user, uint64_t connection) {
        uint64_t client_hash = keyed_hash(table, names.client.data, names.client.length);
        struct registration_node *key_node = NULL, *client_node = NULL;
        struct registration *registration = NULL;

        if (find_or_add_node(table, table->keys, names.key_hash, names.key, &key_node) == 0 &&
            find_or_add_node(table, table->clients, client_hash, names.client, &client_node) == 0 &&
            index_connection(table, client_node, connection) == 0)
                registration = add_pair(table, client_node, key_node, user, connection);
        if (!registration) {
                release_node(table->keys, key_node);
                release_client(table, client_node);
        }
        return registration;
}

int registrations_add_ended(struct registrations *table, struct registration_names names) {
        struct registration_node *client = calloc(1, sizeof(*client) + names.client.length), *key = NULL;
        struct registration *registration = NULL;

        if (!client)
                return -ENOMEM;

        memcpy(client->name, names.client.data, names.client.length);
        client->hh.keylen = (unsigned int)names.client.length;
        client->number = table->n_nodes++;
        if (find_or_add_node(table, table->keys, names.key_hash, names.key, &key) == 0)
                registration = add_pair(table, client, key, (struct slice){ 0 }, 0);
        if (!registration) {
                release_node(table->keys, key);
                free(client);
                return -ENOMEM;
        }

        DL_APPEND2(table->ended, client, previous_ended, next_ended);
        return 0;
}

/* The registration is removed: continue with the next one. */
static void pass_cursor(struct registration_cursor *cursor, const struct registration *registration) {
        if (cursor->next == registration)
                cursor->next = registration->hh.next;
}

void registrations_remove(struct registrations *table, struct registration *registration) {
        struct registration_node *key = registration->key;
        struct registration_node *client = registration->client;

        count_registration_bytes(table, registration, -1);
        table->n_registrations--;
        pass_cursor(&table->check, registration);
        pass_cursor(&table->connection_check, registration);
        HASH_DEL(table->pairs[hash_shard(registration->hh.hashv, REGISTRATIONS_SHARD_BITS)], registration);
        DL_DELETE2(key->registrations, registration, previous_of_key, next_of_key);
        DL_DELETE2(client->registrations, registration, previous_of_client, next_of_client);
        client->n_registrations--;
        registration->key = NULL;
        registration->client = NULL;
        registration_unref(registration);

        if (table->next_key == key && !key->registrations)
                table->next_key = key->hh.next;
        release_node(table->keys, key);
        if (client->previous_ended) {
                release_ended(table, client);
                return;
        }
        reindex_connection(table, client);
        release_client(table, client);
}

void registrations_end_client(struct registrations *table, struct registration *registration) {
        struct registration_node *client = registration->client;

        remove_connection(table, client);
        remove_unreachable(table, client);
        HASH_DEL(table->clients[hash_shard(client->hh.hashv, REGISTRATIONS_SHARD_BITS)], client);
        DL_APPEND2(table->ended, client, previous_ended, next_ended);
}

struct registration *registrations_of_ended(const struct registrations *table) {
        return table->ended ? table->ended->registrations : NULL;
}

struct registration *registrations_of_key(const struct registrations *table, uint64_t hash,
                                          struct slice key) {
        const struct registration_node *node = find_node(table->keys, hash, key);
        struct registration *registration = node ? node->registrations : NULL;

        return registration && registration_has_ended(registration) ? registration_next_of_key(registration)
                                                                    : registration;
}

struct registration *registration_next_of_key(const struct registration *registration) {
        struct registration *next = registration->next_of_key;

        while (next && registration_has_ended(next))
                next = next->next_of_key;
        return next;
}

uint64_t registrations_recipient_bytes(const struct registrations *table, struct registration_names names) {
        const struct registration_node *node = find_node(table->keys, names.key_hash, names.key);

        return node ? node->n_bytes : 0;
}

struct registration *registrations_of_client(const struct registrations *table, struct slice client) {
        const struct registration_node *node = find_client(table, client);

        return node ? node->registrations : NULL;
}

struct registration *registrations_of_connection(const struct registrations *table, uint64_t connection) {
        uint64_t hash = keyed_hash(table, &connection, sizeof(connection));
        const struct registration_node *client;

        HASH_FIND_BYHASHVALUE(by_connection, table->connections[shard_of(hash)], &connection,
                              sizeof(connection), hash_value(hash), client);
        return client ? client->registrations : NULL;
}

bool registrations_have_connections(const struct registrations *table) {
        for (size_t i = 0; i < REGISTRATIONS_N_SHARDS; i++)
                if (table->connections[i])
                        return true;
        return false;
}

void registrations_set_subscribed(struct registrations *table, struct registration *registration) {
        registration->client->is_subscribed = true;
        remove_unreachable(table, registration->client);
}

bool registration_is_subscribed(const struct registration *registration) {
        return registration->client->is_subscribed;
}

void registrations_set_unreachable(struct registrations *table, struct registration *registration,
                                   int64_t now_ns) {
        if (!registration->client->previous_unreachable)
                append_unreachable(table, registration->client, now_ns);
}

void registrations_restart_idle(struct registrations *table, struct slice name, int64_t now_ns) {
        struct registration_node *client = table->unreachable ? find_client(table, name) : NULL;

        if (!client || !client->previous_unreachable)
                return;

        remove_unreachable(table, client);
        append_unreachable(table, client, now_ns);
}

struct registration *registrations_longest_idle(const struct registrations *table) {
        return table->unreachable ? table->unreachable->registrations : NULL;
}

int64_t registrations_longest_idle_since(const struct registrations *table) {
        return table->unreachable ? table->unreachable->idle_since_ns : INT64_MAX;
}

struct registration_usage registrations_usage_of_client(const struct registrations *table,
                                                        struct slice client) {
        const struct registration_node *node = find_client(table, client);

        return node ? (struct registration_usage){ node->n_registrations, node->n_bytes }
                    : (struct registration_usage){ 0 };
}

void registrations_restart_keys(struct registrations *table) {
        table->next_key = NULL;
        table->n_key_shards_begun = 0;
}

bool registrations_next_key(struct registrations *table, struct slice *ret_key) {
        while (!table->next_key && table->n_key_shards_begun < REGISTRATIONS_N_SHARDS)
                table->next_key = table->keys[table->n_key_shards_begun++];
        if (!table->next_key)
                return false;

        *ret_key = node_name(table->next_key);
        table->next_key = table->next_key->hh.next;
        return true;
}
