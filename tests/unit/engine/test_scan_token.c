/* SPDX-License-Identifier: Apache-2.0 */

/* SCAN's tokens, and hard cases of pages: equal hashes, and patterns that take many steps. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/scan.h"
#include "unit/support/secrets.h"
#include "unit/support/table.h"

#define S    SLICE_LITERAL
#define SEED 1

static void put(struct keyspace *keyspace, struct slice key) {
        struct entry *entry;

        cr_assert_eq(entry_new(&entry, key, S(""), (struct version){ 1, 0 }, NULL), 0);
        cr_assert_eq(keyspace_put(keyspace, keyspace_hash(keyspace, entry_key(entry)), entry, DEADLINE_NEVER,
                                  NULL),
                     0);
}

static void fill(struct keyspace *keyspace, int n) {
        char key[32];

        cr_assert_eq(keyspace_init(keyspace, HASH_KEY(SEED)), 0);
        for (int i = 0; i < n; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                put(keyspace, slice_from_string(key));
        }
}

static int result_with(const struct token_key *key, const struct keyspace *keyspace, struct slice pattern,
                       struct slice token) {
        struct scan_page *page = NULL;
        int r = scan_page_new(&page, keyspace,
                              &(struct scan_query){ .token_key = key, .pattern = pattern, .token = token });

        scan_page_free(page);
        return r;
}

static int result_of(const struct keyspace *keyspace, struct slice pattern, struct slice token) {
        return result_with(TOKEN_KEY(1), keyspace, pattern, token);
}

/* The token after the first page. */
static struct slice make_token(const struct keyspace *keyspace, char text[SCAN_TOKEN_LENGTH]) {
        struct scan_page *page;

        cr_assert_eq(scan_page_new(&page, keyspace,
                                   &(struct scan_query){ .token_key = TOKEN_KEY(1), .pattern = S("*") }),
                     0);
        cr_assert(page->has_next);
        memcpy(text, page->token, SCAN_TOKEN_LENGTH);
        scan_page_free(page);
        return (struct slice){ (uint8_t *)text, SCAN_TOKEN_LENGTH };
}

Test(scan_token, is_valid_for_any_pattern_and_any_number_of_times) {
        char text[SCAN_TOKEN_LENGTH];
        struct keyspace keyspace;
        struct slice token;

        fill(&keyspace, 3000);
        token = make_token(&keyspace, text);
        cr_expect_eq(result_of(&keyspace, S("*"), token), 0);
        cr_expect_eq(result_of(&keyspace, S("*"), token), 0);
        cr_expect_eq(result_of(&keyspace, S("another*"), token), 0);
        keyspace_deinit(&keyspace);
}

static const struct {
        const char *name;
        struct slice token;
} foreign[] = {
        { "empty", S("") },
        { "a word", S("token") },
        { "the right length", S("00000000000000000000000000000000"
                                "00000000000000000000000000000000"
                                "00000000000000000000000000000000") },
        { "the right length, no digits", S("ghijklmnopqrstuvwxyzghijklmnopqr"
                                           "ghijklmnopqrstuvwxyzghijklmnopqr"
                                           "ghijklmnopqrstuvwxyzghijklmnopqr") },
        { "NUL", S("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") },
        { "too long", S("00000000000000000000000000") },
};

Test(scan_token, is_refused_if_this_store_did_not_make_it) {
        struct keyspace keyspace;

        fill(&keyspace, 1);
        for (size_t i = 0; i < N_ROWS(foreign); i++)
                cr_expect_eq(result_of(&keyspace, S("*"), foreign[i].token), -EINVAL, ROW(foreign, i));
        keyspace_deinit(&keyspace);
}

Test(scan_token, is_refused_with_another_key) {
        char text[SCAN_TOKEN_LENGTH];
        struct keyspace keyspace;
        struct slice token;

        fill(&keyspace, 3000);
        token = make_token(&keyspace, text);
        cr_expect_eq(result_with(TOKEN_KEY(2), &keyspace, S("*"), token), -EINVAL);
        cr_expect_eq(result_with(&(struct token_key){ { 2 }, { 1 } }, &keyspace, S("*"), token), 0);
        cr_expect_eq(result_with(&(struct token_key){ { 1 }, { 2 } }, &keyspace, S("*"), token), -EINVAL);
        keyspace_deinit(&keyspace);
}

/* Without the key, each bit of a token is as likely to be 0 as 1, whatever the position. */
Test(scan_token, reveals_nothing_about_the_position) {
        enum { N_POSITIONS = 4000, N_BITS = 4 * SCAN_TOKEN_LENGTH };
        static int n_ones[N_BITS];

        for (uint64_t position = 0; position < N_POSITIONS; position++) {
                char text[SCAN_TOKEN_LENGTH];

                cr_assert_eq(scan_token_write(TOKEN_KEY(1), position, text), 0);
                for (size_t i = 0; i < N_BITS; i++) {
                        const char *digits = "0123456789ABCDEF";

                        n_ones[i] += (int)((strchr(digits, text[i / 4]) - digits) >> (i % 4) & 1);
                }
        }
        for (size_t i = 0; i < N_BITS; i++) /* 6 standard deviations */
                cr_expect(abs(n_ones[i] - N_POSITIONS / 2) < 190, "bit %zu: %d of %d", i, n_ones[i],
                          N_POSITIONS);
}

Test(scan_token, is_read_as_it_was_written) {
        static const uint64_t positions[] = { 0, 1, UINT32_MAX, UINT64_MAX };
        char text[SCAN_TOKEN_LENGTH];
        uint64_t position;

        for (size_t i = 0; i < N_ROWS(positions); i++) {
                cr_assert_eq(scan_token_write(TOKEN_KEY(1), positions[i], text), 0);
                cr_assert_eq(scan_token_read(TOKEN_KEY(1), (struct slice){ (uint8_t *)text, sizeof(text) },
                                             &position),
                             0);
                cr_expect_eq(position, positions[i]);
        }
}

Test(scan_token, is_refused_with_any_character_changed_or_missing) {
        char text[SCAN_TOKEN_LENGTH];
        struct keyspace keyspace;
        struct slice token;

        fill(&keyspace, 3000);
        token = make_token(&keyspace, text);
        for (size_t i = 0; i < SCAN_TOKEN_LENGTH; i++) {
                char before = text[i];

                text[i] = before == '0' ? '1' : '0';
                cr_expect_eq(result_of(&keyspace, S("*"), token), -EINVAL, "character %zu", i);
                text[i] = before;
        }
        for (size_t length = 0; length < SCAN_TOKEN_LENGTH; length++)
                cr_expect_eq(result_of(&keyspace, S("*"), (struct slice){ token.data, length }), -EINVAL,
                             "length %zu", length);
        cr_expect_eq(result_of(&keyspace, S("*"), token), 0);
        keyspace_deinit(&keyspace);
}

Test(scan, refuses_an_empty_pattern) {
        struct keyspace keyspace;

        fill(&keyspace, 1);
        cr_expect_eq(result_of(&keyspace, S(""), (struct slice){ 0 }), -EINVAL);
        cr_expect_eq(result_of(&keyspace, (struct slice){ 0 }, (struct slice){ 0 }), -EINVAL);
        keyspace_deinit(&keyspace);
}

struct numbered {
        uint32_t hash;
        uint32_t number;
};

static int by_hash(const void *a, const void *b) {
        uint32_t hash_a = ((const struct numbered *)a)->hash, hash_b = ((const struct numbered *)b)->hash;

        return (hash_a > hash_b) - (hash_a < hash_b);
}

/* The half of the hash that the tables keep. */
static uint32_t value_of(struct slice key) {
        return hash_value(hash_bytes(HASH_KEY(SEED), key));
}

#define N_TRIED 200000 /* about four pairs have equal 32-bit halves */

static void write_number(char *text, size_t length, uint32_t number) {
        for (size_t i = 0; i < 6; i++, number /= 10)
                text[length - 1 - i] = (char)('0' + number % 10);
}

/* Find two numbers: written to the end of text, they make two keys of equal hash. */
static void find_equal_hashes(char *text, size_t length, uint32_t *ret_a, uint32_t *ret_b) {
        struct numbered *tried = calloc(N_TRIED, sizeof(*tried));

        for (uint32_t i = 0; i < N_TRIED; i++) {
                write_number(text, length, i);
                tried[i] = (struct numbered){ value_of((struct slice){ (uint8_t *)text, length }), i };
        }
        qsort(tried, N_TRIED, sizeof(*tried), by_hash);
        for (uint32_t i = 1; i < N_TRIED; i++)
                if (tried[i - 1].hash == tried[i].hash) {
                        *ret_a = tried[i - 1].number;
                        *ret_b = tried[i].number;
                        free(tried);
                        return;
                }
        cr_assert_fail("no two keys of equal hash");
}

/* Return the number of pages. Each page must respect the limits of keys and bytes. */
static size_t count_pages(const struct keyspace *keyspace, struct slice pattern) {
        char text[SCAN_TOKEN_LENGTH];
        struct slice token = { 0 };
        struct scan_page *page;
        size_t n_pages = 0;
        bool has_next;

        do {
                size_t n_bytes = 0;

                cr_assert_eq(scan_page_new(&page, keyspace,
                                           &(struct scan_query){ .token_key = TOKEN_KEY(1),
                                                                 .pattern = pattern,
                                                                 .token = token }),
                             0);
                for (size_t i = 0; i < page->n_entries; i++)
                        n_bytes += entry_key(page->entries[i]).length;
                cr_expect_leq(page->n_entries, SCAN_PAGE_KEYS_MAX);
                cr_expect_leq(n_bytes, SCAN_PAGE_BYTES_MAX);
                n_pages++;
                has_next = page->has_next;
                memcpy(text, page->token, sizeof(text));
                token = (struct slice){ (uint8_t *)text, sizeof(text) };
                scan_page_free(page);
        } while (has_next);
        return n_pages;
}

/* Return how many keys all pages list together. A key that two pages list counts twice. */
static size_t count_listed(const struct keyspace *keyspace, struct slice pattern, int n_pages_max) {
        struct scan_page *page = NULL, *next;
        struct slice token = { 0 };
        size_t n_listed = 0;

        for (int i = 0; i < n_pages_max; i++) {
                cr_assert_eq(scan_page_new(&next, keyspace,
                                           &(struct scan_query){ .token_key = TOKEN_KEY(1),
                                                                 .pattern = pattern,
                                                                 .token = token }),
                             0);
                scan_page_free(page);
                page = next;
                n_listed += page->n_entries;
                token = (struct slice){ (uint8_t *)page->token, SCAN_TOKEN_LENGTH };
                if (!page->has_next) {
                        scan_page_free(page);
                        return n_listed;
                }
        }
        cr_assert_fail("after %d pages there is still another", n_pages_max);
        return n_listed;
}

/* Put the two keys. Return their hash. */
static uint32_t put_pair(struct keyspace *keyspace, char *text, size_t length, const uint32_t *numbers) {
        struct slice key = { (uint8_t *)text, length };

        for (int i = 0; i < 2; i++) {
                write_number(text, length, numbers[i]);
                put(keyspace, key);
        }
        return value_of(key);
}

/* Put n keys of this length that are listed before a key of this hash. */
static void put_before(struct keyspace *keyspace, size_t n, size_t length, uint32_t hash) {
        char text[1000];
        struct slice key = { (uint8_t *)text, length };

        memset(text, 'o', sizeof(text));
        for (uint32_t i = 0; n > 0; i++) {
                write_number(text, length, i);
                if (value_of(key) >= hash)
                        continue;
                put(keyspace, key);
                n--;
        }
}

Test(scan, lists_keys_of_equal_hash_if_a_page_ends_at_them) {
        char text[] = "key-000000";
        struct keyspace keyspace;
        uint32_t numbers[2];

        find_equal_hashes(text, 10, &numbers[0], &numbers[1]);
        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(SEED)), 0);
        /* one key less than a page before them, so that it is full between the two */
        put_before(&keyspace, SCAN_PAGE_KEYS_MAX - 1, 10, put_pair(&keyspace, text, 10, numbers));
        cr_expect_eq(count_listed(&keyspace, S("*"), 10), SCAN_PAGE_KEYS_MAX + 1);
        cr_expect_eq(count_listed(&keyspace, S("key*"), 10), 2);
        keyspace_deinit(&keyspace);
}

Test(scan, lists_keys_of_equal_hash_once_if_a_page_has_bytes_left_for_one_of_them) {
        enum { LONG = 1000, N_BEFORE = SCAN_PAGE_BYTES_MAX / LONG - 1 };
        char text[LONG];
        struct keyspace keyspace;
        uint32_t numbers[2];

        memset(text, 'k', sizeof(text));
        find_equal_hashes(text, LONG, &numbers[0], &numbers[1]);
        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(SEED)), 0);
        put_before(&keyspace, N_BEFORE, LONG, put_pair(&keyspace, text, LONG, numbers));
        cr_expect_eq(count_listed(&keyspace, S("*"), 2), N_BEFORE + 2);
        keyspace_deinit(&keyspace);
}

/* As if all keys had one hash: every key is in one shard. */
Test(scan, lists_the_keys_of_one_shard_in_pages) {
        enum { N_KEYS = 2 * SCAN_PAGE_KEYS_MAX + 1 };
        struct keyspace keyspace;
        char text[16];

        cr_assert_eq(keyspace_init(&keyspace, HASH_KEY(SEED)), 0);
        for (unsigned int i = 0; keyspace.n_keys < N_KEYS; i++) {
                snprintf(text, sizeof(text), "%u", i);
                if (hash_shard(value_of(slice_from_string(text)), KEYSPACE_SHARD_BITS) == 1)
                        put(&keyspace, slice_from_string(text));
        }
        cr_expect_eq(count_pages(&keyspace, S("*")), 3);
        cr_expect_eq(count_listed(&keyspace, S("*"), 3), N_KEYS);
        keyspace_deinit(&keyspace);
}

/*
 * Matching "*aaa...b*" with a key of LENGTH times 'a' takes about LENGTH^2/4 steps: more than a
 * page allows.
 */
#define LENGTH 9000
#define NUMBER 6 /* digits after the letters */
static char costly_key[LENGTH + NUMBER];

static struct slice costly_pattern(struct buf *pattern) {
        buf_append_string(pattern, "*");
        buf_append(pattern, costly_key, LENGTH / 2);
        buf_append_string(pattern, "b*");
        return buf_slice(pattern);
}

static void costly_keys_init(struct keyspace *keyspace, uint32_t a, uint32_t b) {
        cr_assert_eq(keyspace_init(keyspace, HASH_KEY(SEED)), 0);
        put_pair(keyspace, costly_key, sizeof(costly_key), (uint32_t[]){ a, b });
}

Test(scan, does_not_list_a_key_that_takes_more_steps_than_a_page_has_and_ends) {
        struct buf pattern = { 0 };
        struct keyspace keyspace;

        memset(costly_key, 'a', sizeof(costly_key));
        costly_keys_init(&keyspace, 1, 2);
        put(&keyspace, S("cheap"));
        cr_expect_eq(count_listed(&keyspace, costly_pattern(&pattern), 5), 0);
        buf_deinit(&pattern);
        keyspace_deinit(&keyspace);
}

Test(scan, ends_though_two_keys_of_equal_hash_take_more_steps_than_a_page_has) {
        struct buf pattern = { 0 };
        struct keyspace keyspace;
        uint32_t a, b;

        memset(costly_key, 'a', sizeof(costly_key));
        find_equal_hashes(costly_key, sizeof(costly_key), &a, &b);
        costly_keys_init(&keyspace, a, b);
        cr_expect_eq(count_listed(&keyspace, costly_pattern(&pattern), 5), 0);
        buf_deinit(&pattern);
        keyspace_deinit(&keyspace);
}

/* Each key alone takes fewer steps than a page allows, and both together take more. */
#define LESS_LENGTH 500

/* Returns their hash. */
static uint32_t less_costly_keys_init(struct keyspace *keyspace, uint32_t *ret_numbers) {
        memset(costly_key, 'a', sizeof(costly_key));
        find_equal_hashes(costly_key, LESS_LENGTH + NUMBER, &ret_numbers[0], &ret_numbers[1]);
        cr_assert_eq(keyspace_init(keyspace, HASH_KEY(SEED)), 0);
        return put_pair(keyspace, costly_key, LESS_LENGTH + NUMBER, ret_numbers);
}

/*
 * Return how often the key of this number is listed by a pattern that matches only this key. The
 * other key takes as many steps.
 */
static size_t count_less_costly(const struct keyspace *keyspace, uint32_t number) {
        struct buf pattern = { 0 };
        size_t n_listed;

        write_number(costly_key, LESS_LENGTH + NUMBER, number);
        buf_append_string(&pattern, "*");
        buf_append(&pattern, costly_key + LESS_LENGTH / 2, LESS_LENGTH / 2 + NUMBER);
        n_listed = count_listed(keyspace, buf_slice(&pattern), 5);
        buf_deinit(&pattern);
        return n_listed;
}

Test(scan, gives_each_of_two_keys_of_equal_hash_the_steps_that_a_page_has) {
        struct keyspace keyspace;
        uint32_t numbers[2];

        less_costly_keys_init(&keyspace, numbers);
        for (int i = 0; i < 2; i++)
                cr_expect_eq(count_less_costly(&keyspace, numbers[i]), 1, "key %d", i);
        keyspace_deinit(&keyspace);
}

Test(scan, lists_keys_of_equal_hash_once_if_a_page_has_steps_left_for_one_of_them) {
        struct keyspace keyspace;
        uint32_t numbers[2];

        put_before(&keyspace, 1, 10, less_costly_keys_init(&keyspace, numbers));
        for (int i = 0; i < 2; i++)
                cr_expect_eq(count_less_costly(&keyspace, numbers[i]), 1, "key %d", i);
        keyspace_deinit(&keyspace);
}
