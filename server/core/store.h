/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/heap.h"
#include "core/entry.h"
#include "core/table.h"

/*
 * The keys: which entry each has now, when it expires, and what all of them take. Knows no command; the
 * engine decides, the store holds.
 *
 * Ownership: the store holds one reference to each entry that is in it.
 */
struct store {
        struct table table;
        struct heap deadlines; /* monotonic nanoseconds */
        struct hash_key hash_key;
        uint64_t n_bytes; /* what the entries cost: entry_cost() */
};

/* "Never": a deadline past the clock's range. */
#define STORE_NEVER INT64_MAX

/* n_keys_max: how many it is made for; it takes more, more slowly. Returns 0 or -ENOMEM. */
int store_init(struct store *store, const struct hash_key *hash_key, uint64_t n_keys_max);
void store_deinit(struct store *store);

/* Borrowed; NULL where there is none. Knows no time: an entry whose deadline has passed is still here. */
struct entry *store_find(const struct store *store, struct slice key);

/* This key's entry will be looked for soon: what that reads is brought near, first its place, then it. */
void store_expect(const struct store *store, struct slice key);
void store_expect_entry(const struct store *store, struct slice key);

/*
 * Puts the entry in the place of `replaced`, the one its key has now, or NULL where it has none. The
 * store takes over the caller's reference; the reference to what was replaced becomes the caller's.
 *
 * Returns 0 or -ENOMEM: nothing has changed and the caller keeps its reference.
 */
int store_put(struct store *store, struct entry *entry, int64_t deadline_ns, struct entry *replaced);

/* Takes the entry out. The store's reference becomes the caller's. */
void store_remove(struct store *store, struct entry *entry);

/* The entry's deadline, STORE_NEVER where it has none. */
int64_t store_deadline(const struct store *store, struct entry *entry);

/* Every entry, in no order, as table_each(). Borrowed; NULL ends. */
struct entry *store_each(const struct store *store, struct table_cursor *cursor);

/* Borrowed: the entry that expires first if its deadline is at or before now_ns, else NULL. */
struct entry *store_expired(const struct store *store, int64_t now_ns);

uint64_t store_n_keys(const struct store *store);
