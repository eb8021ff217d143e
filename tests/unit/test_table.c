/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/table.h"
#include "unit/table.h"

#define N_MANY 20000

struct named {
        struct table_item item;
        bool is_seen;
        char key[16];
};

/* n items, the i-th under the key "i". */
static struct named *fill(struct table *table, uint32_t shard_bits, uint32_t n) {
        struct named *items = calloc(n, sizeof(*items));

        cr_assert_eq(table_init(table, shard_bits), 0);
        for (uint32_t i = 0; i < n; i++) {
                struct slice key;

                snprintf(items[i].key, sizeof(items[i].key), "%u", i);
                key = slice_from_string(items[i].key);
                cr_assert_eq(table_add(table, table_hash(1, key), key, &items[i].item), 0);
        }
        return items;
}

static struct table_item *find(const struct table *table, const char *key) {
        return table_find(table, table_hash(1, slice_from_string(key)), slice_from_string(key));
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

Test(table, finds_each_item_while_it_grows_and_none_that_was_removed) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, N_MANY);

                cr_expect_eq(table.n_items, N_MANY, ROW(shapes, i));
                for (uint32_t j = 0; j < N_MANY; j += 2)
                        table_remove(&table, &items[j].item);
                cr_expect_eq(table.n_items, N_MANY / 2, ROW(shapes, i));
                for (uint32_t j = 0; j < N_MANY; j++)
                        cr_assert_eq(find(&table, items[j].key), j % 2 ? &items[j].item : NULL,
                                     ROW(shapes, i));
                cr_expect_null(find(&table, "no such key"), ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table, gives_back_the_key_and_the_hash_of_an_item) {
        struct named item = { .key = "key" };
        struct table table;

        cr_assert_eq(table_init(&table, 4), 0);
        cr_assert_eq(table_add(&table, 0x12345678, slice_from_string(item.key), &item.item), 0);
        cr_expect_eq(table_item_key(&item.item).data, (uint8_t *)item.key);
        cr_expect_eq(table_item_key(&item.item).length, 3);
        cr_expect_eq(table_item_hash(&item.item), 0x12345678);
        table_deinit(&table);
}

Test(table, tells_keys_of_one_hash_apart) {
        static const char *const keys[] = { "a", "b", "ab", "a" };
        struct named items[4] = { 0 };
        struct table table;

        cr_assert_eq(table_init(&table, 4), 0);
        for (size_t i = 0; i < 3; i++)
                cr_assert_eq(table_add(&table, 7, slice_from_string(keys[i]), &items[i].item), 0);
        for (size_t i = 0; i < 3; i++)
                cr_expect_eq(table_find(&table, 7, slice_from_string(keys[i])), &items[i].item, "%s",
                             keys[i]);
        cr_expect_null(table_find(&table, 7, slice_from_string("c")));
        cr_expect_null(table_find(&table, 8, slice_from_string("a")));

        table_remove(&table, &items[0].item);
        cr_expect_null(table_find(&table, 7, slice_from_string("a")));
        cr_expect_eq(table_find(&table, 7, slice_from_string("b")), &items[1].item);
        table_deinit(&table);
}

Test(table, takes_keys_of_any_bytes) {
        static const struct slice keys[] = { SLICE_LITERAL("a\0b"), SLICE_LITERAL("a\0c"),
                                             SLICE_LITERAL("a"), SLICE_LITERAL("\xFF") };
        struct named items[4] = { 0 };
        struct table table;

        cr_assert_eq(table_init(&table, 4), 0);
        for (size_t i = 0; i < 4; i++)
                cr_assert_eq(table_add(&table, table_hash(1, keys[i]), keys[i], &items[i].item), 0);
        for (size_t i = 0; i < 4; i++)
                cr_expect_eq(table_find(&table, table_hash(1, keys[i]), keys[i]), &items[i].item, "%zu", i);
        table_deinit(&table);
}

Test(table_hash, depends_on_the_seed) {
        struct slice key = SLICE_LITERAL("key");
        int n_equal = 0;

        cr_expect_eq(table_hash(1, key), table_hash(1, key));
        for (uint64_t seed = 1; seed <= 100; seed++)
                n_equal += table_hash(0, key) == table_hash(seed, key);
        cr_expect_leq(n_equal, 1);
}

Test(table_each, gives_every_item_once) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, 1000);
                struct table_cursor cursor = { 0 };
                struct table_item *item;
                size_t n_seen = 0;

                while ((item = table_each(&table, &cursor))) {
                        cr_assert(!((struct named *)item)->is_seen, ROW(shapes, i));
                        ((struct named *)item)->is_seen = true;
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
                struct table_item *item;
                size_t n_seen = 0;

                for (; (item = table_each(&table, &cursor)); n_seen++)
                        table_remove(&table, item);
                cr_expect_eq(n_seen, 1000, ROW(shapes, i));
                cr_expect_eq(table.n_items, 0, ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table_each, gives_nothing_of_an_empty_table) {
        struct table_cursor cursor = { 0 };
        struct table table;

        cr_assert_eq(table_init(&table, 8), 0);
        cr_expect_null(table_each(&table, &cursor));
        table_deinit(&table);
}

/* SCAN's walk: shard by shard, each with the items whose hash lies in its range. */
Test(table_shard_from, leads_through_all_items_in_the_order_of_their_hashes) {
        for (size_t i = 0; i < N_ROWS(shapes); i++) {
                struct table table;
                struct named *items = fill(&table, shapes[i].shard_bits, 1000);
                uint32_t from = 0, n_seen = 0;

                do {
                        struct table_item *head = table_shard_from(&table, from);
                        uint32_t end;

                        if (!head)
                                break;
                        end = table_shard_end(&table, head);
                        for (struct table_item *item = head; item; item = table_item_next(item), n_seen++) {
                                cr_assert_geq(table_item_hash(item), from, ROW(shapes, i));
                                cr_assert(end == 0 || table_item_hash(item) < end, ROW(shapes, i));
                        }
                        from = end;
                } while (from != 0);
                cr_expect_eq(n_seen, 1000, ROW(shapes, i));
                table_deinit(&table);
                free(items);
        }
}

Test(table_shard_from, finds_the_first_and_the_last_hash_there_is) {
        static const uint32_t hashes[] = { 0, 0x7FFFFFFF, 0x80000000, UINT32_MAX };
        struct named items[4] = { { .key = "a" }, { .key = "b" }, { .key = "c" }, { .key = "d" } };
        struct table table;

        cr_assert_eq(table_init(&table, 1), 0);
        cr_expect_null(table_shard_from(&table, 0));
        for (size_t i = 0; i < 4; i++)
                cr_assert_eq(table_add(&table, hashes[i], slice_from_string(items[i].key), &items[i].item),
                             0);

        cr_expect_eq(table_shard_from(&table, 0), &items[0].item);
        cr_expect_eq(table_shard_from(&table, 0x7FFFFFFF), &items[0].item);
        cr_expect_eq(table_shard_from(&table, 0x80000000), &items[2].item);
        cr_expect_eq(table_shard_from(&table, UINT32_MAX), &items[2].item);
        cr_expect_eq(table_shard_end(&table, &items[1].item), 0x80000000);
        cr_expect_eq(table_shard_end(&table, &items[3].item), 0);

        table_remove(&table, &items[2].item);
        table_remove(&table, &items[3].item);
        cr_expect_null(table_shard_from(&table, 0x80000000));
        table_deinit(&table);
}
