/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/hash.h"

/*
 * A hash table that never stops to grow: many small tables ("shards"), chosen by the hash's top bits. Each grows on
 * its own, by a quarter, so that no insertion waits for all items to move. The hash orders the items for good,
 * whatever grows meanwhile: that is what SCAN's cursor is.
 *
 * Hashes are keyed by the caller, for keys come from strangers.
 *
 * Ownership: items are borrowed, and with them their keys. An item is taken out before it is freed.
 */
struct table_shard;

struct table {
        uint32_t shard_bits;
        uint64_t n_items;
        struct table_shard *shards;
        struct slice (*key)(const void *item); /* the key that an item is found by */
};

/* One item's share of the table, in bytes, as far as it goes on average; for quotas. */
#define TABLE_ITEM_OVERHEAD 18

/*
 * How many shards, as shard_bits, for so many items at most: at most 64 items a shard, as far as the bounds allow. Fewer cost
 * less to walk where there are few items; the lower bound is for a limit that is raised while the table lives.
 */
uint32_t table_shard_bits(uint64_t n_items_max, uint32_t least_bits, uint32_t most_bits);

/* 2^shard_bits shards, 0 to 16. Returns 0 or -ENOMEM. */
int table_init(struct table *table, uint32_t shard_bits, struct slice (*key)(const void *item));

/* Frees the table, not its items. */
void table_deinit(struct table *table);

/* The hash to look up and add with: 32 bits, the top ones choose the shard. */
uint32_t table_hash(const struct hash_key *hash_key, struct slice key);

/* NULL where there is none. */
void *table_find(const struct table *table, uint32_t hash, struct slice key);

/* Returns 0 or -ENOMEM; the table is then unchanged. The key must not be there yet. */
int table_add(struct table *table, uint32_t hash, void *item);

/* Puts an item in the place of another one of the same key, which is there. */
void table_replace(struct table *table, uint32_t hash, const void *item, void *replacement);

/* The item is there. */
void table_remove(struct table *table, uint32_t hash, const void *item);

/* A place between two items. All zeros is the one before the first. */
struct table_cursor {
        uint32_t shard;
        uint32_t position;
        uint32_t hash; /* of the item before it */
};

/* Every item, in no order. NULL ends; items may be removed before the next call, and none added. */
void *table_each(const struct table *table, struct table_cursor *cursor);

/* The same up to the end of the cursor's shard. */
void *table_each_of_shard(const struct table *table, struct table_cursor *cursor);

/*
 * Sets the cursor before the items of the first shard that has any and may have one of hash `from` or above. False
 * where there are none to the end. Some of them may be below `from`.
 */
bool table_seek(const struct table *table, uint32_t from, struct table_cursor *ret_cursor);

/* The first hash above those of the cursor's shard, 0 where it is the last one. */
uint32_t table_shard_end(const struct table *table, const struct table_cursor *cursor);
