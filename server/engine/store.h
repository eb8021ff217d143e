/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/heap.h"
#include "engine/entry.h"
#include "engine/hash.h"

/*
 * The keys: the entry of each, its deadline, and the bytes of all of them. Knows no command: the engine decides, the store
 * holds.
 *
 * The caller hashes a key once, with store_hash(), and passes the hash to every function that needs it. Hashes order the
 * keys for good, however the tables grow: SCAN's position is a hash.
 *
 * Ownership: the store holds one reference to each entry that is in it.
 */

/* 244 keys a shard at a million keys: growing a shard is a step of less than 0.1 ms. */
#define STORE_SHARD_BITS 12
#define STORE_N_SHARDS   (UINT32_C(1) << STORE_SHARD_BITS)

struct store {
        struct entry **shards; /* STORE_N_SHARDS hash tables: see engine/uthash_table.h */
        uint64_t n_keys;
        struct heap deadlines; /* monotonic nanoseconds */
        struct hash_key hash_key;
        uint64_t n_bytes; /* the sum of entry_cost() */
};

/* "Never": a deadline past the clock's range. */
#define STORE_NEVER INT64_MAX

/* Returns 0 or -ENOMEM. */
int store_init(struct store *store, const struct hash_key *hash_key);

/* Accepts a store that is all zeros. */
void store_deinit(struct store *store);

/* The hash of a key in this store. */
uint64_t store_hash(const struct store *store, struct slice key);

/* Borrowed; NULL where the key has no entry. Also finds an entry whose deadline has passed. */
struct entry *store_find(const struct store *store, uint64_t hash, struct slice key);

/*
 * Put the entry in the place of `replaced`, which is the present entry of its key, or NULL where the key has none. The
 * store takes over the caller's reference to the entry; the caller takes over the store's reference to `replaced`.
 *
 * Returns 0 or -ENOMEM: nothing has changed and the caller keeps its reference.
 */
int store_put(struct store *store, uint64_t hash, struct entry *entry, int64_t deadline_ns,
              struct entry *replaced);

/* Take the entry out. The store's reference becomes the caller's. */
void store_remove(struct store *store, struct entry *entry);

/* The entry's deadline, STORE_NEVER where it has none. */
int64_t store_deadline(const struct store *store, struct entry *entry);

/* Where an iteration is. All zeros: before the first entry. */
struct store_cursor {
        uint32_t n_shards_begun;
        struct entry *next;
};

/*
 * Every entry, shard by shard, in each in the order in which they were put. Borrowed; NULL ends. Before the next call the
 * entry may be removed, and no other one.
 */
struct entry *store_each(const struct store *store, struct store_cursor *cursor);

/* Borrowed: the entry with the earliest deadline if that is at or before now_ns, else NULL. */
struct entry *store_expired(const struct store *store, int64_t now_ns);

uint64_t store_n_keys(const struct store *store);
