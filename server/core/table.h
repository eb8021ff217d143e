/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

#define HASH_NONFATAL_OOM             1
#define HASH_INITIAL_NUM_BUCKETS      8U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 3U
#define HASH_BKT_CAPACITY_THRESH      5U
#include <uthash.h>

/*
 * A hash table that never stops to grow: many small uthash tables ("shards"), chosen by the hash's top bits.
 * Each doubles on its own, a few items at a time, so that no insertion waits for all of them to move. The
 * hash orders the items for good, whatever grows meanwhile: that is what SCAN's cursor is.
 *
 * Hashes are seeded by the caller, for keys come from strangers.
 *
 * Ownership: items are borrowed, and with them the key they were added under. An item is taken out before it
 * is freed.
 */

/* Embedded as the first member of what is stored. */
struct table_item {
        UT_hash_handle hh;
};

struct table {
        uint32_t shard_bits;
        uint64_t n_items;
        struct table_item **shards;
};

/* Our share of the buckets for one item, in bytes, as far as it goes on average; for quotas. */
#define TABLE_ITEM_OVERHEAD 24

/* 2^shard_bits shards, 0 to 16. Returns 0 or -ENOMEM. */
int table_init(struct table *table, uint32_t shard_bits);

/* Frees the table, not its items. */
void table_deinit(struct table *table);

/* The hash to look up and add with: 32 bits, the top ones choose the shard. */
uint32_t table_hash(uint64_t seed, struct slice key);

/* NULL where there is none. */
struct table_item *table_find(const struct table *table, uint32_t hash, struct slice key);

/* Returns 0 or -ENOMEM; the table is then unchanged. The key must not be there yet. */
int table_add(struct table *table, uint32_t hash, struct slice key, struct table_item *item);

void table_remove(struct table *table, struct table_item *item);

/* The key it was added under. */
struct slice table_item_key(const struct table_item *item);
uint32_t table_item_hash(const struct table_item *item);

/* Every item, in no order. NULL ends; the item given back last may be removed before the next call. */
struct table_cursor {
        uint32_t shard;
        struct table_item *next;
        bool started;
};
struct table_item *table_each(const struct table *table, struct table_cursor *cursor);

/*
 * The items of the first shard that has any of hash `from` or above. Returns their head, to be followed by
 * table_item_next(), or NULL where there are none to the end. Some of them may be below `from`.
 */
struct table_item *table_shard_from(const struct table *table, uint32_t from);
struct table_item *table_item_next(const struct table_item *item);

/* The first hash above those of the item's shard, 0 where it is the last one. */
uint32_t table_shard_end(const struct table *table, const struct table_item *item);
