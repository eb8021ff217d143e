/* SPDX-License-Identifier: Apache-2.0 */

#include "core/table.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/assert.h"

static uint32_t shard_of(const struct table *table, uint32_t hash) {
        return table->shard_bits == 0 ? 0 : hash >> (32 - table->shard_bits);
}

static uint32_t n_shards(const struct table *table) {
        return UINT32_C(1) << table->shard_bits;
}

int table_init(struct table *table, uint32_t shard_bits) {
        struct table_item **shards;

        ASSERT(shard_bits <= 16);

        shards = calloc((size_t)1 << shard_bits, sizeof(*shards));
        if (!shards)
                return -ENOMEM;

        *table = (struct table){ .shard_bits = shard_bits, .shards = shards };
        return 0;
}

void table_deinit(struct table *table) {
        if (!table->shards)
                return;

        for (uint32_t i = 0; i < n_shards(table); i++)
                HASH_CLEAR(hh, table->shards[i]);
        free(table->shards);
        *table = (struct table){ 0 };
}

uint32_t table_hash(uint64_t seed, struct slice key) {
        return (uint32_t)(XXH3_64bits_withSeed(key.data, key.length, seed) >> 32);
}

struct table_item *table_find(const struct table *table, uint32_t hash, struct slice key) {
        struct table_item *item;

        HASH_FIND_BYHASHVALUE(hh, table->shards[shard_of(table, hash)], key.data, key.length, hash, item);
        return item;
}

int table_add(struct table *table, uint32_t hash, struct slice key, struct table_item *item) {
        struct table_item **shard = &table->shards[shard_of(table, hash)];

        HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard, key.data, key.length, hash, item);
        if (!item->hh.tbl) /* uthash's word for out of memory */
                return -ENOMEM;

        table->n_items++;
        return 0;
}

void table_remove(struct table *table, struct table_item *item) {
        struct table_item **shard = &table->shards[shard_of(table, item->hh.hashv)];

        ASSERT(table->n_items > 0);

        HASH_DELETE(hh, *shard, item);
        table->n_items--;
}

struct slice table_item_key(const struct table_item *item) {
        return (struct slice){ item->hh.key, item->hh.keylen };
}

uint32_t table_item_hash(const struct table_item *item) {
        return item->hh.hashv;
}

struct table_item *table_each(const struct table *table, struct table_cursor *cursor) {
        struct table_item *item = cursor->next;

        if (!cursor->started) {
                cursor->started = true;
                item = table->shards[0];
        }
        while (!item && cursor->shard + 1 < n_shards(table))
                item = table->shards[++cursor->shard];

        cursor->next = item ? item->hh.next : NULL;
        return item;
}

struct table_item *table_shard_from(const struct table *table, uint32_t from) {
        for (uint32_t i = shard_of(table, from); i < n_shards(table); i++)
                if (table->shards[i])
                        return table->shards[i];
        return NULL;
}

struct table_item *table_item_next(const struct table_item *item) {
        return item->hh.next;
}

uint32_t table_shard_end(const struct table *table, const struct table_item *item) {
        uint32_t next = shard_of(table, item->hh.hashv) + 1;

        return next == n_shards(table) ? 0 : next << (32 - table->shard_bits);
}
