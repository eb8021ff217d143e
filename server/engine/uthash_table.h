/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * uthash, the one kind of hash table in the engine: without its own hash, as ours is keyed (HASH_..._BYHASHVALUE), and
 * without exit(): after an insertion that ran out of memory the item's hh.tbl is NULL and the table is unchanged.
 *
 * uthash doubles all buckets of a table at once. So what may hold many items is many tables, "shards", chosen by the top
 * bits of the hash: growing one of them is a short step. Their buckets are chosen by the low bits of the same hash value.
 */

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A shard begins small: a store of few keys has nearly one shard a key. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS      4U
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U

/* The part of a hash that uthash sees. */
static inline unsigned int hash_value(uint64_t hash) {
        return (unsigned int)(hash >> 32);
}

/* The number of the shard, of 2^bits, that holds items of this hash value. */
static inline size_t hash_shard(unsigned int value, unsigned int bits) {
        return value >> (32 - bits);
}
