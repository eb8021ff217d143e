/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cursor is a hash: everything below it has been listed. Entries of equal hash are never parted by the
 * end of a page.
 */

#include "core/scan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/glob.h"

struct scan_page *scan_page_free(struct scan_page *page) {
        if (!page)
                return NULL;

        for (size_t i = 0; i < page->n_entries; i++)
                entry_unref(page->entries[i]);
        free(page->entries);
        free(page);
        return NULL;
}

static void scan_page_cleanup(struct scan_page **page) {
        scan_page_free(*page);
}

/* One of a shard's, as they are sorted. */
struct hashed {
        uint32_t hash;
        struct entry *entry;
};

static int by_hash(const void *a, const void *b) {
        uint32_t hash_a = ((const struct hashed *)a)->hash, hash_b = ((const struct hashed *)b)->hash;

        return (hash_a > hash_b) - (hash_a < hash_b);
}

/* Checking for UTF-8 is so much faster than matching. */
#define SCAN_BYTES_A_STEP 16

/* What one page has done so far, and the room to sort a shard in. */
struct scan {
        const struct store *store;
        const struct scan_query *query;
        struct scan_page *page;
        size_t n_looked_at;
        size_t n_bytes;
        uint64_t budget;
        uint32_t first_hash, last_hash;
        size_t n_listed_before; /* those of last_hash */
        struct hashed *shard;
        size_t n_shard, shard_capacity;
};

static int collect_shard(struct scan *scan, struct table_cursor cursor, uint32_t from) {
        struct entry *entry;
        int r;

        scan->n_shard = 0;
        while ((entry = table_each_of_shard(&scan->store->table, &cursor))) {
                if (cursor.hash < from)
                        continue;
                r = array_reserve((void **)&scan->shard, &scan->shard_capacity, scan->n_shard + 1,
                                  sizeof(*scan->shard));
                if (r < 0)
                        return r;
                scan->shard[scan->n_shard++] = (struct hashed){ cursor.hash, entry };
        }
        if (scan->n_shard > 1)
                qsort(scan->shard, scan->n_shard, sizeof(*scan->shard), by_hash);
        return 0;
}

static bool may_read(struct scan *scan, struct slice key) {
        const struct scan_query *query = scan->query;

        return !query->policy ||
               policy_decide(query->policy, &query->asker, ACCESS_READ, key, &scan->budget);
}

static bool matches(struct scan *scan, struct entry *entry) {
        struct slice key = entry_key(entry);
        uint64_t reading;

        reading = SCAN_KEY_STEPS + key.length / SCAN_BYTES_A_STEP;
        scan->budget -= reading < scan->budget ? reading : scan->budget;
        return store_deadline(scan->store, entry) > scan->query->now_ns && slice_is_utf8(key) &&
               glob_match(scan->query->pattern, key, &scan->budget) && may_read(scan, key);
}

static int list(struct scan_page *page, struct entry *entry) {
        int r;

        r = array_reserve((void **)&page->entries, &page->capacity, page->n_entries + 1,
                          sizeof(*page->entries));
        if (r < 0)
                return r;

        page->entries[page->n_entries++] = entry_ref(entry);
        return 0;
}

static bool is_full(const struct scan *scan) {
        return scan->n_looked_at >= SCAN_PAGE_KEYS_MAX || scan->n_bytes >= SCAN_PAGE_BYTES_MAX ||
               scan->budget == 0;
}

/* Whether the entry is looked at once more, by a page that begins with it: for its bytes, or with a whole budget. */
static bool is_too_much(const struct scan *scan, const struct entry *entry, bool is_match) {
        return is_match ? scan->n_bytes + entry->key_length > SCAN_PAGE_BYTES_MAX : scan->budget == 0;
}

/* What is listed of the last hash is left to the next page, which begins with all of it. */
static void unlist_last_hash(struct scan *scan) {
        while (scan->page->n_entries > scan->n_listed_before)
                entry_unref(scan->page->entries[--scan->page->n_entries]);
}

/* Looks at the collected shard. Returns 0, 1 where the page ends at *ret_cursor, or -ENOMEM. */
static int scan_shard(struct scan *scan, uint32_t *ret_cursor) {
        int r;

        for (size_t i = 0; i < scan->n_shard; i++) {
                struct entry *entry = scan->shard[i].entry;
                uint32_t hash = scan->shard[i].hash;
                bool is_first = scan->n_looked_at == 0 || hash == scan->first_hash, is_match;

                if (is_full(scan) && hash != scan->last_hash) {
                        *ret_cursor = hash;
                        return 1;
                }

                if (scan->n_looked_at++ == 0)
                        scan->first_hash = hash;
                if (is_first) /* a page that starts here again could do no more for it */
                        scan->budget = SCAN_PAGE_STEPS_MAX;
                if (hash != scan->last_hash)
                        scan->n_listed_before = scan->page->n_entries;
                scan->last_hash = hash;

                is_match = matches(scan, entry);
                if (!is_first && is_too_much(scan, entry, is_match)) {
                        unlist_last_hash(scan);
                        *ret_cursor = hash;
                        return 1;
                }
                if (is_match) {
                        r = list(scan->page, entry);
                        if (r < 0)
                                return r;
                        scan->n_bytes += entry->key_length;
                }
        }
        return 0;
}

static int scan_from(struct scan *scan, uint32_t from) {
        struct table_cursor cursor;
        int r;

        while (table_seek(&scan->store->table, from, &cursor)) {
                r = collect_shard(scan, cursor, from);
                if (r == 0)
                        r = scan_shard(scan, &from);
                if (r < 0)
                        return r;
                if (r > 0) {
                        scan->page->has_next = true;
                        return scan_token_write(scan->query->token_key, from, scan->page->token);
                }

                from = table_shard_end(&scan->store->table, &cursor);
                if (from == 0)
                        break;
        }
        return 0;
}

int scan_page_new(struct scan_page **ret_page, const struct store *store, const struct scan_query *query) {
        CLEANUP(scan_page_cleanup) struct scan_page *page = NULL;
        struct scan scan = { .store = store, .query = query, .budget = SCAN_PAGE_STEPS_MAX };
        uint32_t from = 0;
        int r;

        if (query->pattern.length == 0)
                return -EINVAL;
        if (query->token.data) {
                uint64_t position;

                r = scan_token_read(query->token_key, query->token, &position);
                if (r < 0)
                        return r;
                from = (uint32_t)position;
        }

        page = calloc(1, sizeof(*page));
        if (!page)
                return -ENOMEM;

        scan.page = page;
        r = scan_from(&scan, from);
        free(scan.shard);
        if (r < 0)
                return r;

        *ret_page = take_ptr(&page);
        return 0;
}
