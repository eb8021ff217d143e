/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/heap.h"
#include "engine/clock.h"
#include "engine/uthash_table.h"
#include "hash/hash.h"

/*
 * The keys: the entry of each key, its deadline, and the total size of all entries. This module
 * implements no command; server/engine/commands.c does.
 */

/* 1. Entries */

/*
 * A key with its value, version and fencing token, in one allocation. Entries are immutable: a SET
 * replaces the entry. Therefore replies and notifications that are not yet published can refer to
 * an entry, and a batch can be undone.
 *
 * Reference counted, not thread-safe.
 */
struct entry {
        UT_hash_handle hh; /* entry_new() sets hh.key and hh.keylen to the entry's key */
        int64_t version_wall_ms;
        uint32_t version_counter : 31;
        uint32_t has_fence : 1;
        uint32_t n_references : 31;
        uint32_t is_persistent : 1; /* whether the storage has it */
        uint32_t expiry_position;   /* in the keyspace's heap of deadlines */
        uint32_t value_length;
        uint8_t bytes[]; /* key, value, fencing token */
};

/*
 * Make an entry with copies of the arguments; the caller owns one reference. fence NULL: no fencing
 * token. Returns 0, or -ENOMEM, also for a key or value longer than an MQTT packet can be.
 */
int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence);

struct entry *entry_ref(struct entry *entry);

/* Accepts NULL, returns NULL. */
struct entry *entry_unref(struct entry *entry);

struct slice entry_key(const struct entry *entry);
struct slice entry_value(const struct entry *entry);
struct version entry_version(const struct entry *entry);

/*
 * The entry's fencing token. Returns false if it has none. ret_fence->node points into the entry.
 */
bool entry_fence(const struct entry *entry, struct hlc *ret_fence);

/*
 * Memory in bytes of an entry of these sizes, with the overhead of the allocator and of the table;
 * for quotas.
 */
uint64_t entry_cost(size_t key_length, size_t value_length, const struct hlc *fence);
uint64_t entry_cost_of(const struct entry *entry);

/* 2. The table of entries */

/*
 * The caller hashes a key once with keyspace_hash() and passes the hash to every function that
 * needs it. A position of SCAN is a hash. It stays valid when tables grow, because growth does not
 * change the order of the hashes.
 *
 * Ownership: the keyspace owns one reference to each of its entries.
 */

/* At a million keys a shard has 244 keys, and growing it takes less than 0.1 ms. */
#define KEYSPACE_SHARD_BITS 12
#define KEYSPACE_N_SHARDS   (UINT32_C(1) << KEYSPACE_SHARD_BITS)

struct keyspace {
        struct entry **shards; /* KEYSPACE_N_SHARDS hash tables: see engine/uthash_table.h */
        uint64_t n_keys;
        struct heap deadlines; /* monotonic nanoseconds */
        struct hash_key hash_key;
        uint64_t n_bytes; /* the sum of entry_cost() */
};

/* The deadline of an entry that does not expire. */
#define DEADLINE_NEVER INT64_MAX

/* Returns 0 or -ENOMEM. */
int keyspace_init(struct keyspace *keyspace, const struct hash_key *hash_key);

/* Accepts a keyspace that is all zeros. */
void keyspace_deinit(struct keyspace *keyspace);

/* Return the hash of a key in this keyspace. */
uint64_t keyspace_hash(const struct keyspace *keyspace, struct slice key);

/* Return the key's entry, borrowed, or NULL. The entry's deadline may have passed. */
struct entry *keyspace_find(const struct keyspace *keyspace, uint64_t hash, struct slice key);

/*
 * Replace `replaced` by the entry. `replaced` is the key's present entry, or NULL if the key has
 * none. The caller's reference to the entry moves to the keyspace, and the keyspace's reference to
 * `replaced` moves to the caller.
 *
 * Returns 0, or -ENOMEM: then nothing has changed and the caller keeps its reference.
 */
int keyspace_put(struct keyspace *keyspace, uint64_t hash, struct entry *entry, int64_t deadline_ns,
                 struct entry *replaced);

/* Remove the entry. The keyspace's reference moves to the caller. */
void keyspace_remove(struct keyspace *keyspace, struct entry *entry);

/* Return the entry's deadline, or DEADLINE_NEVER. */
int64_t keyspace_deadline(const struct keyspace *keyspace, struct entry *entry);

/* The position of an iteration. Initialize with zeros. */
struct keyspace_cursor {
        uint32_t n_shards_begun;
        struct entry *next;
};

/*
 * Iterate over all entries: shard by shard, and in the order of insertion within a shard. Borrowed;
 * NULL after the last. The caller may remove the returned entry before the next call, but no other.
 */
struct entry *keyspace_each(const struct keyspace *keyspace, struct keyspace_cursor *cursor);

/*
 * Return the entry with the earliest deadline if that deadline is at or before now_ns, else NULL.
 * Borrowed.
 */
struct entry *keyspace_expired(const struct keyspace *keyspace, int64_t now_ns);
