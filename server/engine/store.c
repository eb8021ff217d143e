/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/store.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t *entry_position(void *item) {
        return &((struct entry *)item)->expiry_position;
}

static struct entry **shard_of(const struct store *store, unsigned int value) {
        return &store->shards[hash_shard(value, STORE_SHARD_BITS)];
}

int store_init(struct store *store, const struct hash_key *hash_key) {
        *store = (struct store){ .hash_key = *hash_key };
        heap_init(&store->deadlines, entry_position);
        store->shards = calloc(STORE_N_SHARDS, sizeof(store->shards[0]));
        return store->shards ? 0 : -ENOMEM;
}

void store_deinit(struct store *store) {
        struct store_cursor cursor = { 0 };
        struct entry *entry;

        if (!store->shards)
                return;

        while ((entry = store_each(store, &cursor))) {
                store_remove(store, entry);
                entry_unref(entry);
        }
        free(store->shards);
        heap_deinit(&store->deadlines);
        *store = (struct store){ 0 };
}

uint64_t store_hash(const struct store *store, struct slice key) {
        return hash_bytes(&store->hash_key, key);
}

struct entry *store_find(const struct store *store, uint64_t hash, struct slice key) {
        struct entry *entry;

        HASH_FIND_BYHASHVALUE(hh, *shard_of(store, hash_value(hash)), key.data, key.length, hash_value(hash),
                              entry);
        return entry;
}

static int add(struct store *store, uint64_t hash, struct entry *entry) {
        struct entry **shard = shard_of(store, hash_value(hash));

        HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard, entry->hh.key, entry->hh.keylen, hash_value(hash), entry);
        if (!entry->hh.tbl)
                return -ENOMEM;

        store->n_keys++;
        store->n_bytes += entry_cost_of(entry);
        return 0;
}

int store_put(struct store *store, uint64_t hash, struct entry *entry, int64_t deadline_ns,
              struct entry *replaced) {
        int r = 0;

        if (deadline_ns != STORE_NEVER)
                r = heap_reserve(&store->deadlines, 1);
        if (r == 0)
                r = add(store, hash,
                        entry); /* for a moment there are two of the key: removing cannot fail */
        if (r < 0)
                return r;

        if (replaced)
                store_remove(store, replaced);
        if (deadline_ns != STORE_NEVER)
                heap_insert(&store->deadlines, deadline_ns, entry);
        return 0;
}

void store_remove(struct store *store, struct entry *entry) {
        struct entry **shard = shard_of(store, entry->hh.hashv);

        HASH_DEL(*shard, entry);
        store->n_keys--;
        store->n_bytes -= entry_cost_of(entry);
        if (entry->expiry_position != HEAP_NONE)
                heap_remove(&store->deadlines, entry);
}

int64_t store_deadline(const struct store *store, struct entry *entry) {
        return entry->expiry_position == HEAP_NONE ? STORE_NEVER : heap_deadline(&store->deadlines, entry);
}

struct entry *store_each(const struct store *store, struct store_cursor *cursor) {
        struct entry *entry = cursor->next;

        while (!entry && cursor->n_shards_begun < STORE_N_SHARDS)
                entry = store->shards[cursor->n_shards_begun++];
        cursor->next = entry ? entry->hh.next : NULL;
        return entry;
}

struct entry *store_expired(const struct store *store, int64_t now_ns) {
        return heap_first_deadline(&store->deadlines) <= now_ns ? heap_first(&store->deadlines) : NULL;
}

uint64_t store_n_keys(const struct store *store) {
        return store->n_keys;
}
