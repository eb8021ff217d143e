/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/uthash_table.h"
#include "protocol/hlc.h"

/*
 * A key with its value, version and fencing token, in one allocation. Entries are immutable: a SET replaces the entry.
 * Therefore replies and notifications that are not yet published can refer to an entry, and a batch can be undone.
 *
 * Reference counted, not thread-safe.
 */

/* A version that the store assigned; its node id is the store's. PROTOCOL.md "Hybrid logical clocks". */
struct version {
        int64_t wall_ms;
        uint32_t counter; /* below 2^31-1 */
};

/* Return < 0, 0 or > 0, as memcmp(). */
static inline int version_compare(struct version a, struct version b) {
        if (a.wall_ms != b.wall_ms)
                return a.wall_ms < b.wall_ms ? -1 : 1;
        return (a.counter > b.counter) - (a.counter < b.counter);
}

struct entry {
        UT_hash_handle hh; /* the store's; its key and keylen are the entry's key from the beginning */
        int64_t version_wall_ms;
        uint32_t version_counter : 31;
        uint32_t has_fence : 1;
        uint32_t n_references : 31;
        uint32_t is_persistent : 1; /* whether storage keeps it */
        uint32_t expiry_position;   /* in the store's heap of deadlines */
        uint32_t value_length;
        uint8_t bytes[]; /* key, value, fencing token */
};

/*
 * Make an entry with copies of the arguments; the caller owns one reference. fence NULL: no fencing token. Returns 0, or
 * -ENOMEM, also for a key or value longer than an MQTT packet can be.
 */
int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence);

struct entry *entry_ref(struct entry *entry);

/* Accepts NULL, returns NULL. */
struct entry *entry_unref(struct entry *entry);

struct slice entry_key(const struct entry *entry);
struct slice entry_value(const struct entry *entry);
struct version entry_version(const struct entry *entry);

/* The entry's fencing token. Returns false if it has none. ret_fence->node points into the entry. */
bool entry_fence(const struct entry *entry, struct hlc *ret_fence);

/* Bytes that an entry of these sizes takes, with its share of the allocator and the table; for quotas. */
uint64_t entry_cost(size_t key_length, size_t value_length, const struct hlc *fence);
uint64_t entry_cost_of(const struct entry *entry);
