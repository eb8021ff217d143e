/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/table.h"
#include "unit/secrets.h"
#include "unit/table.h"

#define N_MANY 20000

struct named {
        bool is_seen;
        char key[16];
};

static struct slice key_of(const void *item) {
        return slice_from_string(((const struct named *)item)->key);
}

static struct slice slice_of(const void *item) {
        return *(const struct slice *)item;
}

static uint32_t hash_of(const char *key) {
        return table_hash(HASH_KEY(1), slice_from_string(key));
}

/* n items, the i-th under the key "i". */
static struct named *fill(struct table *table, uint32_t shard_bits, uint32_t n) {
        struct named *items = calloc(n, sizeof(*items));

        cr_assert_eq(table_init(table, shard_bits, key_of), 0);
        for (uint32_t i = 0; i < n; i++) {
                snprintf(items[i].key, sizeof(items[i].key), "%u", i);
                cr_assert_eq(table_add(table, hash_of(items[i].key), &items[i]), 0);
        }
        return items;
}

static struct named *find(const struct table *table, const char *key) {
        return table_find(table, hash_of(key), slice_from_string(key));
}

static const struct {
        const char *name;
        uint32_t shard_bits;
} shapes[] = {
        { "one shard", 0 },
        { "two shards", 1 },
        { "256 shards", 8 },
        { "more shards than items", 16 },
};

static const struct {
        const char *name;
        uint64_t n_items_max;
        uint32_t shard_bits;
} sizes[] = {
        { "as few as may be", 0, 10 }, { "64 items a shard", 65536, 10 },  { "65", 66560, 11 },
        { "a million", 1000000, 14 },  { "more than fits", 10000000, 14 }, { "no limit", UINT64_MAX, 14 },
};

Test(table, has_more_shards_for_more_items_within_bounds) {
        for (size_t i = 0; i < N_ROWS(sizes); i++)
                cr_expect_eq(table_shard_bits(sizes[i].n_items_max, 10, 14), sizes[i].shard_bits,
                             ROW(sizes, i));
}

Test(table, finds_each_item_while_it_grows_and_none_that_was_removed) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, N_MANY);

                cr_expect_eq(table.n_items, N_MANY, ROW(shapes, i));
                for (uint32_t j = 0; j < N_MANY; j += 2)
                        table_remove(&table, hash_of(items[j].key), &items[j]);
                cr_expect_eq(table.n_items, N_MANY / 2, ROW(shapes, i));
                for (uint32_t j = 0; j < N_MANY; j++)
                        cr_assert_eq(find(&table, items[j].key), j % 2 ? &items[j] : NULL, ROW(shapes, i));
                cr_expect_null(find(&table, "no such key"), ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table, tells_keys_of_one_hash_apart) {
        static struct named items[40];
        struct table table;

        cr_assert_eq(table_init(&table, 4, key_of), 0);
        for (size_t i = 0; i < N_ROWS(items); i++) {
                snprintf(items[i].key, sizeof(items[i].key), "%zu", i);
                cr_assert_eq(table_add(&table, 7, &items[i]), 0);
        }
        for (size_t i = 0; i < N_ROWS(items); i++)
                cr_expect_eq(table_find(&table, 7, slice_from_string(items[i].key)), &items[i], "%zu", i);
        cr_expect_null(table_find(&table, 7, SLICE_LITERAL("c")));
        cr_expect_null(table_find(&table, 8, SLICE_LITERAL("1")));

        for (size_t i = 0; i < N_ROWS(items); i += 2)
                table_remove(&table, 7, &items[i]);
        for (size_t i = 0; i < N_ROWS(items); i++)
                cr_expect_eq(table_find(&table, 7, slice_from_string(items[i].key)),
                             i % 2 ? &items[i] : NULL, "%zu", i);
        table_deinit(&table);
}

Test(table, takes_keys_of_any_bytes) {
        static struct slice keys[] = { SLICE_LITERAL("a\0b"), SLICE_LITERAL("a\0c"), SLICE_LITERAL("a"),
                                       SLICE_LITERAL("\xFF"), SLICE_LITERAL("") };
        struct table table;

        cr_assert_eq(table_init(&table, 4, slice_of), 0);
        for (size_t i = 0; i < N_ROWS(keys); i++)
                cr_assert_eq(table_add(&table, 7, &keys[i]), 0);
        for (size_t i = 0; i < N_ROWS(keys); i++)
                cr_expect_eq(table_find(&table, 7, keys[i]), &keys[i], "%zu", i);
        table_deinit(&table);
}

Test(table, finds_a_replacement_where_what_it_replaced_was) {
        struct table table;
        struct named *items = fill(&table, 2, 1000);
        struct named *replacements = calloc(1000, sizeof(*replacements));

        for (uint32_t i = 0; i < 1000; i += 3) {
                replacements[i] = items[i];
                table_replace(&table, hash_of(items[i].key), &items[i], &replacements[i]);
        }
        cr_expect_eq(table.n_items, 1000);
        for (uint32_t i = 0; i < 1000; i++)
                cr_expect_eq(find(&table, items[i].key), i % 3 ? &items[i] : &replacements[i], "%u", i);
        table_deinit(&table);
        free(items);
        free(replacements);
}

/* What is there now and then must not be found more slowly for what has gone, nor take more room. */
Test(table, is_as_it_was_after_many_came_and_went) {
        struct table table;
        struct named *items = fill(&table, 0, 1000);
        struct named *others = calloc(100, sizeof(*others));

        for (uint32_t i = 0; i < N_MANY; i++) {
                struct named *other = &others[i % 100];

                if (i >= 100)
                        table_remove(&table, hash_of(other->key), other);
                snprintf(other->key, sizeof(other->key), "other %u", i);
                cr_assert_eq(table_add(&table, hash_of(other->key), other), 0);
        }
        for (uint32_t i = 0; i < 100; i++)
                table_remove(&table, hash_of(others[i].key), &others[i]);
        cr_expect_eq(table.n_items, 1000);
        for (uint32_t i = 0; i < 1000; i++)
                cr_expect_eq(find(&table, items[i].key), &items[i], "%u", i);
        for (uint32_t i = 0; i < 1000; i++)
                table_remove(&table, hash_of(items[i].key), &items[i]);
        cr_expect_eq(table.n_items, 0);
        cr_expect_null(find(&table, "1"));
        cr_assert_eq(table_add(&table, hash_of("1"), &items[1]), 0);
        cr_expect_eq(find(&table, "1"), &items[1]);
        table_deinit(&table);
        free(items);
        free(others);
}

/* Every bucket of a small shard may have been passed. */
Test(table, finds_nothing_in_shards_that_have_been_full) {
        static struct named items[8];
        uint64_t state = 1;

        for (int round = 0; round < 1000; round++) {
                struct table table;

                cr_assert_eq(table_init(&table, 0, key_of), 0);
                for (uint32_t i = 0; i < 8; i++) {
                        snprintf(items[i].key, sizeof(items[i].key), "%u", i);
                        cr_assert_eq(table_add(&table, hash_of(items[i].key), &items[i]), 0);
                }
                for (uint32_t change = 0; change < 50; change++) {
                        struct named *item;

                        state = state * 6364136223846793005 + 1442695040888963407;
                        item = &items[state >> 61];
                        table_remove(&table, hash_of(item->key), item);
                        cr_assert_null(find(&table, item->key));
                        snprintf(item->key, sizeof(item->key), "%d %u", round, change);
                        cr_assert_null(find(&table, item->key));
                        cr_assert_eq(table_add(&table, hash_of(item->key), item), 0);
                        cr_assert_eq(find(&table, item->key), item);
                }
                table_deinit(&table);
        }
}

/* It only brings near: there is nothing to see but that it does no harm, wherever it looks. */
Test(table_hash, depends_on_the_key) {
        struct slice key = SLICE_LITERAL("key");
        int n_equal = 0;

        cr_expect_eq(table_hash(HASH_KEY(1), key), table_hash(HASH_KEY(1), key));
        for (uint8_t number = 1; number <= 100; number++)
                n_equal += table_hash(HASH_KEY(0), key) == table_hash(HASH_KEY(number), key);
        cr_expect_leq(n_equal, 1);
}

Test(table_each, gives_every_item_once) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, 1000);
                struct table_cursor cursor = { 0 };
                struct named *item;
                size_t n_seen = 0;

                while ((item = table_each(&table, &cursor))) {
                        cr_assert(!item->is_seen, ROW(shapes, i));
                        cr_assert_eq(cursor.hash, hash_of(item->key), ROW(shapes, i));
                        item->is_seen = true;
                        n_seen++;
                }
                cr_expect_eq(n_seen, 1000, ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table_each, goes_on_where_the_last_item_was_removed) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, 1000);
                struct table_cursor cursor = { 0 };
                struct named *item;
                size_t n_seen = 0;

                for (; (item = table_each(&table, &cursor)); n_seen++)
                        table_remove(&table, cursor.hash, item);
                cr_expect_eq(n_seen, 1000, ROW(shapes, i));
                cr_expect_eq(table.n_items, 0, ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table_each, gives_nothing_of_an_empty_table) {
        struct table_cursor cursor = { 0 };
        struct table table;

        cr_assert_eq(table_init(&table, 8, key_of), 0);
        cr_expect_null(table_each(&table, &cursor));
        table_deinit(&table);
}

/* SCAN's walk: shard by shard, each with the items whose hash lies in its range. */
Test(table_seek, leads_through_all_items_in_the_order_of_their_hashes) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, 1000);
                struct table_cursor cursor;
                uint32_t from = 0, n_seen = 0;

                while (table_seek(&table, from, &cursor)) {
                        uint32_t end = table_shard_end(&table, &cursor);

                        for (; table_each_of_shard(&table, &cursor); n_seen++) {
                                cr_assert_geq(cursor.hash, from, ROW(shapes, i));
                                cr_assert(end == 0 || cursor.hash < end, ROW(shapes, i));
                        }
                        from = end;
                        if (from == 0)
                                break;
                }
                cr_expect_eq(n_seen, 1000, ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

/* The first item of the first shard from this hash on, NULL where there is none. *ret_end is the shard's end. */
static struct named *first_from(const struct table *table, uint32_t from, uint32_t *ret_end) {
        struct table_cursor cursor;

        if (!table_seek(table, from, &cursor))
                return NULL;

        *ret_end = table_shard_end(table, &cursor);
        return table_each_of_shard(table, &cursor);
}

Test(table_seek, finds_the_first_and_the_last_hash_there_is) {
        static const uint32_t hashes[] = { 0, 0x7FFFFFFF, 0x80000000, UINT32_MAX };
        struct named items[4] = { { .key = "a" }, { .key = "b" }, { .key = "c" }, { .key = "d" } };
        struct table table;
        uint32_t end;

        cr_assert_eq(table_init(&table, 1, key_of), 0);
        cr_expect_null(first_from(&table, 0, &end));
        for (size_t i = 0; i < 4; i++)
                cr_assert_eq(table_add(&table, hashes[i], &items[i]), 0);

        cr_expect_eq(first_from(&table, 0, &end), &items[0]);
        cr_expect_eq(first_from(&table, 0x7FFFFFFF, &end), &items[0]);
        cr_expect_eq(end, 0x80000000);
        cr_expect_eq(first_from(&table, 0x80000000, &end), &items[2]);
        cr_expect_eq(first_from(&table, UINT32_MAX, &end), &items[2]);
        cr_expect_eq(end, 0);

        table_remove(&table, hashes[2], &items[2]);
        table_remove(&table, hashes[3], &items[3]);
        cr_expect_null(first_from(&table, 0x80000000, &end));
        table_deinit(&table);
}
