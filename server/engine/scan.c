/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page visits shards in ascending order, and the entries of a shard in the order of their hashes.
 * A position is a hash: all keys with lower hashes have been visited. uthash stores half of each
 * hash; the other half is recomputed for the position of the next page, and to order entries whose
 * stored halves are equal.
 */

#include "engine/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/glob.h"
#include "protocol/resp3.h"

struct scan_page *scan_page_free(struct scan_page *page) {
        if (!page)
                return NULL;

        for (size_t i = 0; i < page->n_entries; i++)
                entry_unref(page->entries[i]);
        free(page->entries);
        free(page);
        return NULL;
}

CLEANUP_FUNCTION(cleanup_page, struct scan_page *, scan_page_free)

/* Bytes of UTF-8 validation that cost as much as one matching step. */
#define UTF8_BYTES_PER_STEP 16

/* A page under construction. */
struct scan {
        const struct keyspace *keyspace;
        const struct scan_query *query;
        struct scan_page *page;
        size_t n_visited;
        size_t n_bytes;
        uint64_t n_payload_bytes; /* encoded size of the listed keys in the reply */
        uint64_t budget;
        struct entry **shard; /* the entries of one shard, sorted */
        size_t n_shard, shard_capacity;
};

static uint64_t hash_of_entry(const struct keyspace *keyspace, const struct entry *entry) {
        return keyspace_hash(keyspace, entry_key(entry));
}

static int compare_hashes(const void *a, const void *b, void *keyspace) {
        const struct entry *entry_a = *(struct entry *const *)a, *entry_b = *(struct entry *const *)b;
        uint64_t hash_a = entry_a->hh.hashv, hash_b = entry_b->hh.hashv;

        if (hash_a == hash_b) {
                hash_a = hash_of_entry(keyspace, entry_a);
                hash_b = hash_of_entry(keyspace, entry_b);
        }
        return (hash_a > hash_b) - (hash_a < hash_b);
}

static bool is_before(const struct keyspace *keyspace, const struct entry *entry, uint64_t position) {
        return entry->hh.hashv < hash_value(position) ||
               (entry->hh.hashv == hash_value(position) && hash_of_entry(keyspace, entry) < position);
}

static int collect_shard(struct scan *scan, struct entry *first, uint64_t position) {
        int r;

        scan->n_shard = 0;
        for (struct entry *entry = first; entry; entry = entry->hh.next) {
                if (is_before(scan->keyspace, entry, position))
                        continue;
                r = array_reserve((void **)&scan->shard, &scan->shard_capacity, scan->n_shard + 1,
                                  sizeof(*scan->shard));
                if (r < 0)
                        return r;
                scan->shard[scan->n_shard++] = entry;
        }
        if (scan->n_shard > 1)
                qsort_r(scan->shard, scan->n_shard, sizeof(*scan->shard), compare_hashes,
                        (void *)scan->keyspace);
        return 0;
}

static bool may_read(struct scan *scan, struct slice key) {
        const struct scan_query *query = scan->query;

        return !query->policy ||
               policy_decide(query->policy, &query->origin, ACCESS_READ, key, &scan->budget);
}

/*
 * Ask the policy before the pattern. The steps of a match decide where a page ends. If keys that
 * the client may not read were matched, the client could learn their names from the number of
 * pages.
 */
static bool is_visible_match(struct scan *scan, struct entry *entry) {
        struct slice key = entry_key(entry);
        uint64_t cost = SCAN_KEY_STEPS + key.length / UTF8_BYTES_PER_STEP;

        scan->budget -= cost < scan->budget ? cost : scan->budget;
        return keyspace_deadline(scan->keyspace, entry) > scan->query->now_ns && slice_is_utf8(key) &&
               may_read(scan, key) && glob_match(scan->query->pattern, key, &scan->budget);
}

static int list_entry(struct scan *scan, struct entry *entry) {
        struct scan_page *page = scan->page;
        int r;

        r = array_reserve((void **)&page->entries, &page->capacity, page->n_entries + 1,
                          sizeof(*page->entries));
        if (r < 0)
                return r;

        page->entries[page->n_entries++] = entry_ref(entry);
        scan->n_bytes += entry_key(entry).length;
        scan->n_payload_bytes += resp3_blob_length(entry_key(entry).length);
        return 0;
}

static bool page_is_full(const struct scan *scan) {
        return scan->n_visited >= SCAN_PAGE_KEYS_MAX || scan->n_bytes >= SCAN_PAGE_BYTES_MAX ||
               scan->budget == 0;
}

/* Size of a reply without its keys: the headers of two arrays, and a token. */
#define PAYLOAD_FRAME_BYTES (2 * (1 + UINT64_DIGITS_MAX + 2) + 5 + SCAN_TOKEN_LENGTH + 2)

static bool fits_reply(const struct scan *scan, const struct entry *entry) {
        uint64_t limit = scan->query->max_payload_bytes;

        return limit == 0 ||
               PAYLOAD_FRAME_BYTES + scan->n_payload_bytes + resp3_blob_length(entry_key(entry).length) <=
                       limit;
}

/*
 * Return whether to defer the entry to the next page: it does not fit, or its match ran out of
 * steps.
 */
static bool must_defer(const struct scan *scan, const struct entry *entry, bool is_match) {
        if (!is_match)
                return scan->budget == 0;
        return scan->n_bytes + entry_key(entry).length > SCAN_PAGE_BYTES_MAX || !fits_reply(scan, entry);
}

/* End the page before the i-th entry of the shard. */
static int end_page(struct scan *scan, size_t i) {
        uint64_t position = hash_of_entry(scan->keyspace, scan->shard[i]);

        scan->page->has_next = true;
        return scan_token_write(scan->query->token_key, position, scan->page->token);
}

/* Visit the collected entries. Returns 0, -EMSGSIZE or -ENOMEM. */
static int visit_shard(struct scan *scan) {
        int r;

        for (size_t i = 0; i < scan->n_shard; i++) {
                struct entry *entry = scan->shard[i];
                bool is_first = scan->n_visited == 0, is_match;

                if (page_is_full(scan))
                        return end_page(scan, i);

                scan->n_visited++;
                is_match = is_visible_match(scan, entry);
                if (!is_first && must_defer(scan, entry, is_match))
                        return end_page(scan, i);
                if (is_match && !fits_reply(scan, entry))
                        return -EMSGSIZE;
                if (is_match) {
                        r = list_entry(scan, entry);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int visit_shards_from(struct scan *scan, uint64_t position) {
        int r = 0;

        for (size_t i = hash_shard(hash_value(position), KEYSPACE_SHARD_BITS);
             i < KEYSPACE_N_SHARDS && r == 0 && !scan->page->has_next; i++) {
                r = collect_shard(scan, scan->keyspace->shards[i], position);
                if (r == 0)
                        r = visit_shard(scan);
        }
        return r;
}

int scan_page_new(struct scan_page **ret_page, const struct keyspace *keyspace,
                  const struct scan_query *query) {
        CLEANUP(cleanup_page) struct scan_page *page = NULL;
        struct scan scan = { .keyspace = keyspace, .query = query, .budget = SCAN_PAGE_STEPS_MAX };
        uint64_t position = 0;
        bool is_utf8;
        int r;

        if (query->pattern.length == 0)
                return -EINVAL;
        is_utf8 = slice_is_utf8(query->pattern);
        if (is_utf8 && glob_check(query->pattern) != GLOB_VALID)
                return -EINVAL;
        if (query->token.data) {
                r = scan_token_read(query->token_key, query->token, &position);
                if (r < 0)
                        return r;
        }

        page = calloc(1, sizeof(*page));
        if (!page)
                return -ENOMEM;

        scan.page = page;
        r = is_utf8 ? visit_shards_from(&scan, position) : 0;
        free(scan.shard);
        if (r < 0)
                return r;

        *ret_page = take_ptr(&page);
        return 0;
}
