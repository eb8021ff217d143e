/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Settings of uthash, the hash table of the engine. The engine passes its own keyed hashes
 * (HASH_..._BYHASHVALUE). If out of memory, uthash does not exit: the item's hh.tbl is NULL and the
 * table is unchanged.
 *
 * uthash doubles all buckets of a table at once. A table that can hold many items is therefore
 * split into shards, each a uthash table, chosen by the top bits of the hash: growing one shard is
 * short. The low bits choose the bucket.
 */

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A shard begins small, because a store with few keys has about one key in a shard. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS      4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U

/* The part of a hash that uthash uses. */
static inline unsigned int hash_value(uint64_t hash) {
        return (unsigned int)(hash >> 32);
}

/* The number of the shard, of 2^bits, that holds items of this hash value. */
static inline size_t hash_shard(unsigned int value, unsigned int bits) {
        return value >> (32 - bits);
}
