/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/heap.h"

#define N_ITEMS 500

struct item {
        uint32_t position;
        int64_t deadline; /* of the naive model */
        bool is_in;
};

static uint32_t *item_position(void *item) {
        return &((struct item *)item)->position;
}

static void items_init(struct item *items, size_t n_items) {
        for (size_t i = 0; i < n_items; i++)
                items[i] = (struct item){ .position = HEAP_NONE };
}

Test(heap, returns_the_earliest_first) {
        static const int64_t deadlines[] = { 5, -3, INT64_MAX, 0, 7, INT64_MIN, 5, 1 };
        static const int64_t sorted[] = { INT64_MIN, -3, 0, 1, 5, 5, 7, INT64_MAX };
        struct item items[8];
        struct heap heap;

        items_init(items, 8);
        heap_init(&heap, item_position);
        cr_assert_eq(heap_reserve(&heap, 8), 0);
        for (size_t i = 0; i < 8; i++)
                heap_insert(&heap, deadlines[i], &items[i]);
        for (size_t i = 0; i < 8; i++) {
                struct item *first = heap_first(&heap);

                cr_expect_eq(heap_first_deadline(&heap), sorted[i], "item %zu", i);
                cr_expect_eq(deadlines[first - items], sorted[i], "item %zu", i);
                heap_remove(&heap, first);
        }
        cr_expect_null(heap_first(&heap));
        heap_deinit(&heap);
}

Test(heap, has_no_first_item_when_empty) {
        struct heap heap;

        heap_init(&heap, item_position);
        cr_expect_null(heap_first(&heap));
        cr_expect_eq(heap_first_deadline(&heap), INT64_MAX);
        cr_expect_eq(heap.capacity, 0);
        heap_deinit(&heap);
}

Test(heap, updates_the_position_of_an_item) {
        struct item items[3];
        struct heap heap;

        items_init(items, 3);
        heap_init(&heap, item_position);
        cr_assert_eq(heap_reserve(&heap, 3), 0);
        for (size_t i = 0; i < 3; i++)
                heap_insert(&heap, (int64_t)(10 - i), &items[i]);
        for (size_t i = 0; i < 3; i++) {
                cr_expect_neq(items[i].position, HEAP_NONE);
                cr_expect_eq(heap_deadline(&heap, &items[i]), (int64_t)(10 - i));
        }

        heap_remove(&heap, &items[1]);
        cr_expect_eq(items[1].position, HEAP_NONE);
        heap_insert(&heap, 1, &items[1]); /* insert the removed item again */
        cr_expect_eq(heap_first(&heap), &items[1]);
        heap_deinit(&heap);
}

Test(heap, inserts_as_many_items_as_reserved) {
        struct item items[40];
        struct heap heap;

        items_init(items, 40);
        heap_init(&heap, item_position);
        cr_assert_eq(heap_reserve(&heap, 1), 0);
        heap_insert(&heap, 0, &items[0]);
        cr_assert_eq(heap_reserve(&heap, 39), 0);
        for (size_t i = 1; i < 40; i++)
                heap_insert(&heap, 0, &items[i]);
        cr_expect_geq(heap.capacity, 40);
        heap_deinit(&heap);
}

Test(heap, rejects_more_items_than_positions) {
        struct heap heap;

        heap_init(&heap, item_position);
        cr_expect_eq(heap_reserve(&heap, HEAP_NONE), -ENOMEM);
        cr_expect_eq(heap.capacity, 0);
        heap_deinit(&heap);
}

static struct item *naive_first(struct item *items) {
        struct item *first = NULL;

        for (size_t i = 0; i < N_ITEMS; i++)
                if (items[i].is_in && (!first || items[i].deadline < first->deadline))
                        first = &items[i];
        return first;
}

static void toggle(struct heap *heap, struct item *item) {
        if (item->is_in) {
                heap_remove(heap, item);
        } else {
                cr_assert_eq(heap_reserve(heap, 1), 0);
                item->deadline = rand() % 100; /* a small range, so that many deadlines are equal */
                heap_insert(heap, item->deadline, item);
        }
        item->is_in = !item->is_in;
}

/* Choose the first item often, so that a wrong order anywhere reaches the top. */
static struct item *choose(struct heap *heap, struct item *items) {
        struct item *first = heap_first(heap);

        return first && rand() % 3 == 0 ? first : &items[rand() % N_ITEMS];
}

Test(heap, agrees_with_a_naive_search_after_every_change) {
        static struct item items[N_ITEMS];
        struct heap heap;

        srand(1);
        items_init(items, N_ITEMS);
        heap_init(&heap, item_position);
        for (int i = 0; i < 20000; i++) {
                struct item *expected;

                toggle(&heap, choose(&heap, items));
                expected = naive_first(items);
                cr_assert_eq(heap_first_deadline(&heap), expected ? expected->deadline : INT64_MAX,
                             "after %d changes", i + 1);
                cr_assert_eq(!heap_first(&heap), !expected, "after %d changes", i + 1);
        }
        for (size_t i = 0; i < N_ITEMS; i++) {
                cr_expect_eq(items[i].position != HEAP_NONE, items[i].is_in, "item %zu", i);
                if (items[i].is_in)
                        cr_expect_eq(heap_deadline(&heap, &items[i]), items[i].deadline, "item %zu", i);
        }
        heap_deinit(&heap);
}
