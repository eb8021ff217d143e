/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store.h"

#include <errno.h>

/* 61 keys a shard at a million keys: short chains, and a shard's growth moves a few hundred at most. */
#define STORE_SHARD_BITS 14

static uint32_t *entry_position(void *item) {
        return &((struct entry *)item)->expiry_position;
}

int store_init(struct store *store, uint64_t seed) {
        *store = (struct store){ .seed = seed };
        heap_init(&store->deadlines, entry_position);
        return table_init(&store->table, STORE_SHARD_BITS);
}

void store_deinit(struct store *store) {
        struct table_cursor cursor = { 0 };
        struct table_item *item;

        if (!store->table.shards)
                return;

        while ((item = table_each(&store->table, &cursor))) {
                table_remove(&store->table, item);
                entry_unref((struct entry *)item);
        }
        table_deinit(&store->table);
        heap_deinit(&store->deadlines);
}

struct entry *store_find(const struct store *store, struct slice key) {
        return (struct entry *)table_find(&store->table, table_hash(store->seed, key), key);
}

int store_put(struct store *store, struct entry *entry, int64_t deadline_ns, struct entry *replaced) {
        struct slice key = entry_key(entry);
        uint32_t hash = replaced ? table_item_hash(&replaced->item) : table_hash(store->seed, key);
        int r;

        if (deadline_ns != STORE_NEVER) {
                r = heap_reserve(&store->deadlines, 1);
                if (r < 0)
                        return r;
        }

        /* the new one first: should that fail, the old one is still there */
        r = table_add(&store->table, hash, key, &entry->item);
        if (r < 0)
                return r;
        if (replaced)
                store_remove(store, replaced);

        if (deadline_ns != STORE_NEVER)
                heap_insert(&store->deadlines, deadline_ns, entry);
        store->n_bytes += entry_cost_of(entry);
        return 0;
}

void store_remove(struct store *store, struct entry *entry) {
        table_remove(&store->table, &entry->item);
        if (entry->expiry_position != HEAP_NONE)
                heap_remove(&store->deadlines, entry);
        store->n_bytes -= entry_cost_of(entry);
}

int64_t store_deadline(const struct store *store, struct entry *entry) {
        return entry->expiry_position == HEAP_NONE ? STORE_NEVER : heap_deadline(&store->deadlines, entry);
}

struct entry *store_expired(const struct store *store, int64_t now_ns) {
        return heap_first_deadline(&store->deadlines) <= now_ns ? heap_first(&store->deadlines) : NULL;
}

uint64_t store_n_keys(const struct store *store) {
        return store->table.n_items;
}
