/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cursor is a hash: everything below it has been listed. Entries of equal hash are never parted by the
 * end of a page.
 */

#include "core/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/parse.h"
#include "common/topics.h"
#include "core/packet_limits.h"

/* A token in binary: the cursor and a keyed hash of it, by which we know our own. */
struct token {
        uint8_t cursor[4];
        uint8_t seal[8];
};
_Static_assert(2 * sizeof(struct token) == SCAN_TOKEN_LENGTH, "a token is written in base16");

static struct token token_make(const struct store *store, uint32_t cursor) {
        struct token token;
        uint64_t seal;

        memcpy(token.cursor, &cursor, sizeof(token.cursor));
        seal = XXH3_64bits_withSeed(token.cursor, sizeof(token.cursor), ~store->seed);
        memcpy(token.seal, &seal, sizeof(token.seal));
        return token;
}

static int token_read(const struct store *store, struct slice text, uint32_t *ret_cursor) {
        CLEANUP(buf_deinit) struct buf bytes = { 0 };
        struct token expected;
        uint32_t cursor;
        int r;

        if (text.length != SCAN_TOKEN_LENGTH)
                return -EINVAL;
        r = base16_append_decoded(&bytes, text);
        if (r < 0)
                return r;

        memcpy(&cursor, bytes.data, sizeof(cursor));
        expected = token_make(store, cursor);
        if (memcmp(&expected, bytes.data, sizeof(expected)) != 0)
                return -EINVAL;

        *ret_cursor = cursor;
        return 0;
}

static int token_write(const struct store *store, uint32_t cursor, char *ret_text) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct token token = token_make(store, cursor);

        base16_append(&text, (struct slice){ (const uint8_t *)&token, sizeof(token) });
        if (buf_failed(&text))
                return -ENOMEM;

        memcpy(ret_text, text.data, SCAN_TOKEN_LENGTH);
        return 0;
}

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
        uint64_t n_payload_bytes; /* of the reply, as it is written */
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

        if (store_deadline(scan->store, entry) <= scan->query->now_ns)
                return false;

        reading = key.length / SCAN_BYTES_A_STEP;
        scan->budget -= reading < scan->budget ? reading : scan->budget;
        return slice_is_utf8(key) && glob_match(scan->query->pattern, key, &scan->budget) &&
               may_read(scan, key);
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

/* What a reply has beside its keys: two arrays and a token. */
#define PAYLOAD_FRAME_BYTES (2 * (1 + PARSE_UINT64_DIGITS_MAX + 2) + 5 + SCAN_TOKEN_LENGTH + 2)

static bool fits_reply(const struct scan *scan, const struct entry *entry) {
        uint64_t limit = scan->query->max_payload_bytes;

        return limit == 0 ||
               PAYLOAD_FRAME_BYTES + scan->n_payload_bytes + packet_blob_length(entry->key_length) <= limit;
}

/* Whether the entry is looked at once more, by a page that begins with it: for its bytes, or with a whole budget. */
static bool is_too_much(const struct scan *scan, const struct entry *entry, bool is_match) {
        if (!is_match)
                return scan->budget == 0;
        return scan->n_bytes + entry->key_length > SCAN_PAGE_BYTES_MAX || !fits_reply(scan, entry);
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
                if (is_match && !fits_reply(scan, entry))
                        return -EMSGSIZE;
                if (is_match) {
                        r = list(scan->page, entry);
                        if (r < 0)
                                return r;
                        scan->n_bytes += entry->key_length;
                        scan->n_payload_bytes += packet_blob_length(entry->key_length);
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
                        return token_write(scan->store, from, scan->page->token);
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
                r = token_read(store, query->token, &from);
                if (r < 0)
                        return r;
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
