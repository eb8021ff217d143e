/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store.h"

#include <errno.h>

/*
 * 244 keys a shard at a million keys: a shard's growth moves what is no work, and all the shards' heads stay in the
 * core's own cache, which each lookup needs one of.
 */
#define SHARD_BITS_LEAST 10
#define SHARD_BITS_MOST  12

static uint32_t *entry_position(void *item) {
        return &((struct entry *)item)->expiry_position;
}

static struct slice key_of(const void *item) {
        return entry_key(item);
}

int store_init(struct store *store, const struct hash_key *hash_key, uint64_t n_keys_max) {
        uint32_t shard_bits = table_shard_bits(n_keys_max, SHARD_BITS_LEAST, SHARD_BITS_MOST);

        *store = (struct store){ .hash_key = *hash_key };
        heap_init(&store->deadlines, entry_position);
        return table_init(&store->table, shard_bits, key_of);
}

void store_deinit(struct store *store) {
        struct table_cursor cursor = { 0 };
        struct entry *entry;

        if (!store->table.shards)
                return;

        while ((entry = store_each(store, &cursor)))
                entry_unref(entry);
        table_deinit(&store->table);
        heap_deinit(&store->deadlines);
}

struct entry *store_find(const struct store *store, struct slice key) {
        return table_find(&store->table, table_hash(&store->hash_key, key), key);
}

void store_expect(const struct store *store, struct slice key) {
        table_expect(&store->table, table_hash(&store->hash_key, key));
}

void store_expect_entry(const struct store *store, struct slice key) {
        table_expect_item(&store->table, table_hash(&store->hash_key, key));
}

/* What of an entry is not in the table. */
static void forget(struct store *store, struct entry *entry) {
        if (entry->expiry_position != HEAP_NONE)
                heap_remove(&store->deadlines, entry);
        store->n_bytes -= entry_cost_of(entry);
}

int store_put(struct store *store, struct entry *entry, int64_t deadline_ns, struct entry *replaced) {
        uint32_t hash = table_hash(&store->hash_key, entry_key(entry));
        int r;

        if (deadline_ns != STORE_NEVER) {
                r = heap_reserve(&store->deadlines, 1);
                if (r < 0)
                        return r;
        }

        if (replaced) {
                table_replace(&store->table, hash, replaced, entry);
                forget(store, replaced);
        } else {
                r = table_add(&store->table, hash, entry);
                if (r < 0)
                        return r;
        }

        if (deadline_ns != STORE_NEVER)
                heap_insert(&store->deadlines, deadline_ns, entry);
        store->n_bytes += entry_cost_of(entry);
        return 0;
}

void store_remove(struct store *store, struct entry *entry) {
        table_remove(&store->table, table_hash(&store->hash_key, entry_key(entry)), entry);
        forget(store, entry);
}

int64_t store_deadline(const struct store *store, struct entry *entry) {
        return entry->expiry_position == HEAP_NONE ? STORE_NEVER : heap_deadline(&store->deadlines, entry);
}

struct entry *store_each(const struct store *store, struct table_cursor *cursor) {
        return table_each(&store->table, cursor);
}

struct entry *store_expired(const struct store *store, int64_t now_ns) {
        return heap_first_deadline(&store->deadlines) <= now_ns ? heap_first(&store->deadlines) : NULL;
}

uint64_t store_n_keys(const struct store *store) {
        return store->table.n_items;
}
