/* SPDX-License-Identifier: Apache-2.0 */

#include "observation/client_table.h"

#include <errno.h>
#include <stdlib.h>

#include "hash/client_hash.h"

#define HASH_FUNCTION(client, length, ret_hash) ((ret_hash) = client_hash(client, length))
#define HASH_NONFATAL_OOM                       1
#include <uthash.h>
#include <utlist.h>

/* Whether the client is verified, in one byte, and its id. */
#define KEY_MAX (1 + CLIENT_TABLE_TEXT_MAX)

struct counted_client {
        struct client_usage usage; /* first: a pointer to it is a pointer to the client */
        UT_hash_handle hh;         /* by key */
        struct counted_client *prev, *next;
        uint8_t key[KEY_MAX], user[CLIENT_TABLE_TEXT_MAX];
};

struct client_table {
        struct counted_client *by_key;
        struct counted_client *list; /* utlist: the one with the last request first */
        size_t n_clients;
        bool is_truncated;
};

int client_table_new(struct client_table **ret_table) {
        struct client_table *table = calloc(1, sizeof(*table));

        if (!table)
                return -ENOMEM;
        *ret_table = table;
        return 0;
}

static void remove_client(struct client_table *table, struct counted_client *client) {
        HASH_DEL(table->by_key, client);
        DL_DELETE(table->list, client);
        table->n_clients--;
        free(client);
}

struct client_table *client_table_free(struct client_table *table) {
        if (!table)
                return NULL;

        while (table->list)
                remove_client(table, table->list);
        free(table);
        return NULL;
}

static struct slice copy_shortened(uint8_t *place, struct slice text) {
        size_t length = text.length < CLIENT_TABLE_TEXT_MAX ? text.length : CLIENT_TABLE_TEXT_MAX;

        if (length > 0)
                memcpy(place, text.data, length);
        return (struct slice){ place, length };
}

/* Add a client that the table does not have. Returns NULL if memory is short. */
static struct counted_client *add_client(struct client_table *table, struct slice key) {
        struct counted_client *client = malloc(sizeof(*client));

        if (!client)
                return NULL;

        *client = (struct counted_client){ 0 };
        memcpy(client->key, key.data, key.length);
        client->usage.origin.is_verified = key.data[0];
        client->usage.origin.client = (struct slice){ client->key + 1, key.length - 1 };
        HASH_ADD(hh, table->by_key, key, key.length, client);
        if (!client->hh.tbl) {
                free(client);
                return NULL;
        }
        DL_PREPEND(table->list, client);
        if (++table->n_clients <= CLIENT_TABLE_MAX)
                return client;
        remove_client(table, table->list->prev);
        table->is_truncated = true;
        return client;
}

void client_table_count(struct client_table *table, const struct request_origin *origin, size_t n_bytes,
                        bool is_refused, int64_t wall_ms) {
        uint8_t bytes[KEY_MAX] = { origin->is_verified };
        struct slice key = { bytes, 1 + copy_shortened(bytes + 1, origin->client).length };
        struct counted_client *client;

        HASH_FIND(hh, table->by_key, key.data, key.length, client);
        if (!client)
                client = add_client(table, key);
        if (!client)
                return;

        DL_DELETE(table->list, client);
        DL_PREPEND(table->list, client);
        client->usage.origin.user = copy_shortened(client->user, origin->user);
        client->usage.n_requests++;
        client->usage.n_bytes += n_bytes;
        client->usage.n_refused += is_refused;
        client->usage.last_request_ms = wall_ms;
}

bool client_table_is_truncated(const struct client_table *table) {
        return table->is_truncated;
}

const struct client_usage *client_table_next(const struct client_table *table,
                                             const struct client_usage *previous) {
        const struct counted_client *next =
                previous ? ((const struct counted_client *)previous)->next : table->list;

        return next ? &next->usage : NULL;
}
