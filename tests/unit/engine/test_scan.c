/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Listing keys": pages of keys. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/scan.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

#define S      SLICE_LITERAL
#define N_MANY 10000

static void put_slice(struct keyspace *keyspace, struct slice key, int64_t deadline_ns) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, key, S(""), (struct version){ 1, 0 }, NULL), 0);
        cr_assert_eq(
                keyspace_put(keyspace, keyspace_hash(keyspace, entry_key(entry)), entry, deadline_ns, NULL),
                0);
}

static void put(struct keyspace *keyspace, const char *prefix, int number) {
        char key[32];

        snprintf(key, sizeof(key), "%s%d", prefix, number);
        put_slice(keyspace, slice_from_string(key), DEADLINE_NEVER);
}

static void remove_key(struct keyspace *keyspace, struct slice key) {
        struct entry *entry = keyspace_find(keyspace, keyspace_hash(keyspace, key), key);

        keyspace_remove(keyspace, entry);
        entry_unref(entry);
}

static struct slice token_of(const struct scan_page *page) {
        return page ? (struct slice){ (const uint8_t *)page->token, SCAN_TOKEN_LENGTH }
                    : (struct slice){ 0 };
}

/* Return the number after the first letter of the key. */
static int number_of(const struct entry *entry) {
        struct slice key = entry_key(entry);
        uint64_t number;

        cr_assert_eq(parse_uint64((struct slice){ key.data + 1, key.length - 1 }, &number), 0);
        return (int)number;
}

/* Return the next page; after NULL, the first. Frees the given page. */
static struct scan_page *next_page(struct scan_page *page, const struct keyspace *keyspace,
                                   struct slice pattern) {
        struct scan_page *next = NULL;

        cr_assert_eq(scan_page_new(&next, keyspace,
                                   &(struct scan_query){ .token_key = TOKEN_KEY(1),
                                                         .pattern = pattern,
                                                         .token = token_of(page) }),
                     0);
        scan_page_free(page);
        return next;
}

/* List all pages. Count each key "k<i>" in n_listed[i]. Returns the number of listed keys. */
static size_t list(const struct keyspace *keyspace, struct slice pattern, int *n_listed) {
        struct scan_page *page = NULL;
        size_t n = 0;
        int n_pages = 0;

        do {
                page = next_page(page, keyspace, pattern);
                for (size_t i = 0; i < page->n_entries; i++)
                        if (n_listed && entry_key(page->entries[i]).data[0] == 'k')
                                n_listed[number_of(page->entries[i])]++;
                n += page->n_entries;
                cr_assert_lt(n_pages++, 100, "the pages do not end");
        } while (page->has_next);
        scan_page_free(page);
        return n;
}

Test(scan, lists_nothing_of_an_empty_store_on_one_page) {
        struct keyspace keyspace;
        struct scan_page *page;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        cr_assert_eq(scan_page_new(&page, &keyspace,
                                   &(struct scan_query){ .token_key = TOKEN_KEY(1), .pattern = S("*") }),
                     0);
        cr_expect_eq(page->n_entries, 0);
        cr_expect_not(page->has_next);
        scan_page_free(page);
        keyspace_deinit(&keyspace);
}

Test(scan, lists_each_key_once) {
        static int n_listed[N_MANY];
        struct keyspace keyspace;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < N_MANY; i++)
                put(&keyspace, "k", i);
        cr_expect_eq(list(&keyspace, S("*"), n_listed), N_MANY);
        for (int i = 0; i < N_MANY; i++)
                cr_assert_eq(n_listed[i], 1, "key %d", i);
        keyspace_deinit(&keyspace);
}

Test(scan, lists_exactly_the_matching_keys) {
        struct keyspace keyspace;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < 100; i++)
                put(&keyspace, i % 2 ? "odd-" : "even-", i);
        cr_expect_eq(list(&keyspace, S("odd-*"), NULL), 50);
        cr_expect_eq(list(&keyspace, S("even-?"), NULL), 5);
        cr_expect_eq(list(&keyspace, S("even-42"), NULL), 1);
        cr_expect_eq(list(&keyspace, S("Even-42"), NULL), 0);
        keyspace_deinit(&keyspace);
}

Test(scan, visits_a_limited_number_of_keys_per_page) {
        struct keyspace keyspace;
        struct scan_page *page = NULL;
        int n_pages = 0;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < 3 * SCAN_PAGE_KEYS_MAX; i++)
                put(&keyspace, "k", i);
        put(&keyspace, "other", 1);
        do {
                page = next_page(page, &keyspace, S("other*"));
                cr_expect_leq(page->n_entries, 1);
                n_pages++;
        } while (page->has_next);
        scan_page_free(page);
        cr_expect_geq(n_pages, 4);
        cr_expect_leq(n_pages, 5);
        keyspace_deinit(&keyspace);
}

Test(scan, ends_at_a_full_last_page) {
        struct keyspace keyspace;
        struct scan_page *page = NULL;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < SCAN_PAGE_KEYS_MAX; i++)
                put(&keyspace, "k", i);
        page = next_page(NULL, &keyspace, S("*"));
        cr_expect_eq(page->n_entries, SCAN_PAGE_KEYS_MAX);
        cr_expect_not(page->has_next);
        scan_page_free(page);
        keyspace_deinit(&keyspace);
}

Test(scan, lists_keys_that_exist_throughout_while_others_change) {
        static int n_listed[3 * N_MANY];
        struct keyspace keyspace;
        struct scan_page *page = NULL;
        int n_added = 0;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < N_MANY; i++)
                put(&keyspace, "k", i);
        for (int i = 0; i < N_MANY; i++)
                put(&keyspace, "gone", i);
        do {
                page = next_page(page, &keyspace, S("k*"));
                for (size_t i = 0; i < page->n_entries; i++)
                        n_listed[number_of(page->entries[i])]++;

                /* between two pages the table grows by half and loses some keys */
                for (int i = 0; i < 1000 && n_added < N_MANY; i++, n_added++) {
                        char gone[32];

                        snprintf(gone, sizeof(gone), "gone%d", n_added);
                        remove_key(&keyspace, slice_from_string(gone));
                        put(&keyspace, "k", N_MANY + 2 * n_added);
                        put(&keyspace, "k", N_MANY + 2 * n_added + 1);
                }
        } while (page->has_next);
        scan_page_free(page);

        cr_expect_eq(n_added, N_MANY);
        for (int i = 0; i < 3 * N_MANY; i++)
                cr_assert(i < N_MANY ? n_listed[i] == 1 : n_listed[i] <= 1, "key %d", i);
        keyspace_deinit(&keyspace);
}

Test(scan, continues_after_the_key_of_its_position_is_deleted) {
        struct keyspace keyspace;
        struct scan_page *page;
        size_t n_listed;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        for (int i = 0; i < 2 * SCAN_PAGE_KEYS_MAX; i++)
                put(&keyspace, "k", i);
        page = next_page(NULL, &keyspace, S("*"));
        n_listed = page->n_entries;
        for (int i = 0; i < 2 * SCAN_PAGE_KEYS_MAX; i++) {
                char key[32];

                snprintf(key, sizeof(key), "k%d", i);
                remove_key(&keyspace, slice_from_string(key));
        }
        page = next_page(page, &keyspace, S("*"));
        cr_expect_eq(n_listed, SCAN_PAGE_KEYS_MAX);
        cr_expect_eq(page->n_entries, 0);
        cr_expect_not(page->has_next);
        scan_page_free(page);
        keyspace_deinit(&keyspace);
}

Test(scan, keeps_deleted_keys_of_a_page_readable) {
        struct keyspace keyspace;
        struct scan_page *page;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        put_slice(&keyspace, S("key"), DEADLINE_NEVER);
        page = next_page(NULL, &keyspace, S("*"));
        remove_key(&keyspace, S("key"));
        keyspace_deinit(&keyspace);
        cr_assert_eq(page->n_entries, 1);
        cr_expect(slice_equal(entry_key(page->entries[0]), S("key")));
        cr_expect_null(scan_page_free(page));
        cr_expect_null(scan_page_free(NULL));
}

Test(scan, limits_the_bytes_of_a_page) {
        static char key[10000];
        struct keyspace keyspace;
        struct scan_page *page = NULL;
        size_t n_listed = 0;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        memset(key, 'a', sizeof(key));
        for (int i = 0; i < 100; i++) {
                key[0] = (char)('A' + i / 10);
                key[1] = (char)('A' + i % 10);
                put_slice(&keyspace, (struct slice){ (uint8_t *)key, sizeof(key) }, DEADLINE_NEVER);
        }
        do {
                page = next_page(page, &keyspace, S("*"));
                cr_expect_leq(page->n_entries * sizeof(key), SCAN_PAGE_BYTES_MAX);
                if (page->has_next)
                        cr_expect_gt((page->n_entries + 1) * sizeof(key), SCAN_PAGE_BYTES_MAX);
                n_listed += page->n_entries;
        } while (page->has_next);
        scan_page_free(page);
        cr_expect_eq(n_listed, 100);
        keyspace_deinit(&keyspace);
}

Test(scan, skips_expired_keys) {
        struct keyspace keyspace;
        struct scan_page *page;

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
        put_slice(&keyspace, S("past"), 9);
        put_slice(&keyspace, S("now"), 10);
        put_slice(&keyspace, S("future"), 11);
        cr_assert_eq(scan_page_new(&page, &keyspace,
                                   &(struct scan_query){
                                           .token_key = TOKEN_KEY(1), .pattern = S("*"), .now_ns = 10 }),
                     0);
        cr_assert_eq(page->n_entries, 1);
        cr_expect(slice_equal(entry_key(page->entries[0]), S("future")));
        scan_page_free(page);
        keyspace_deinit(&keyspace);
}

static const struct {
        const char *name;
        struct slice key;
        bool is_listed;
} keys[] = {
        { "ASCII", S("key"), true },          { "UTF-8", S("\xC3\xA4"), true },
        { "NUL is UTF-8", S("a\0b"), true },  { "one byte that is none", S("a\xFF"), false },
        { "overlong", S("\xC0\xAF"), false }, { "a surrogate", S("\xED\xA0\x80"), false },
        { "cut", S("a\xC3"), false },
};

Test(scan, skips_keys_that_are_not_utf8) {
        for (size_t i = 0; i < N_ROWS(keys); i++) {
                struct keyspace keyspace;

                cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(1)), 0);
                put_slice(&keyspace, keys[i].key, DEADLINE_NEVER);
                cr_expect_eq(list(&keyspace, S("*"), NULL), keys[i].is_listed, ROW(keys, i));
                keyspace_deinit(&keyspace);
        }
}
