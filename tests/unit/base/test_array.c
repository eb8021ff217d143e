/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/array.h"

Test(array, reserves_the_requested_capacity) {
        uint64_t *items = NULL;
        size_t capacity = 0;

        for (size_t n = 1; n <= 1000; n++) {
                cr_assert_eq(array_reserve((void **)&items, &capacity, n, sizeof(*items)), 0);
                cr_assert_geq(capacity, n);
                items[n - 1] = n;
        }
        for (size_t n = 1; n <= 1000; n++)
                cr_expect_eq(items[n - 1], n);
        free(items);
}

Test(array, grows_by_doubling) {
        void *items = NULL;
        size_t capacity = 0, before = 0;
        int n_growths = 0;

        for (size_t n = 1; n <= 100000; n++) {
                cr_assert_eq(array_reserve(&items, &capacity, n, 4), 0);
                if (before != 0 && capacity != before) {
                        cr_expect_eq(capacity, 2 * before);
                        n_growths++;
                }
                before = capacity;
        }
        cr_expect_leq(n_growths, 17);
        free(items);
}

Test(array, does_not_reallocate_if_the_items_fit) {
        void *items = NULL, *before;
        size_t capacity = 0, capacity_before;

        cr_assert_eq(array_reserve(&items, &capacity, 0, 8), 0);
        cr_expect_null(items);

        cr_assert_eq(array_reserve(&items, &capacity, 3, 8), 0);
        before = items;
        capacity_before = capacity;
        cr_assert_eq(array_reserve(&items, &capacity, capacity, 8), 0);
        cr_assert_eq(array_reserve(&items, &capacity, 1, 8), 0);
        cr_expect_eq(items, before);
        cr_expect_eq(capacity, capacity_before);
        free(items);
}

Test(array, allocates_items_larger_than_the_initial_size) {
        void *items = NULL;
        size_t capacity = 0;

        cr_assert_eq(array_reserve(&items, &capacity, 1, 100000), 0);
        cr_assert_geq(capacity, 1);
        memset(items, 1, 100000);
        free(items);
}

Test(array, keeps_the_array_if_the_size_overflows) {
        static const size_t too_many[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 8 };
        uint64_t *items = NULL;
        size_t capacity = 0, before;

        cr_assert_eq(array_reserve((void **)&items, &capacity, 1, sizeof(*items)), 0);
        items[0] = 42;
        before = capacity;
        for (size_t i = 0; i < ARRAY_LENGTH(too_many); i++) {
                cr_expect_eq(array_reserve((void **)&items, &capacity, too_many[i], sizeof(*items)), -ENOMEM,
                             "row %zu", i);
                cr_expect_eq(capacity, before, "row %zu", i);
                cr_expect_eq(items[0], 42, "row %zu", i);
        }
        free(items);
}

Test(compare_uint64, compares_all_64_bits) {
        uint64_t numbers[] = { 5, UINT64_MAX, 0, (uint64_t)INT64_MAX + 1, 1, 5 };

        qsort(numbers, 6, sizeof(*numbers), compare_uint64);
        for (size_t i = 1; i < 6; i++)
                cr_expect_leq(numbers[i - 1], numbers[i], "%zu", i);
        cr_expect_eq(compare_uint64(&numbers[2], &numbers[3]) < 0, numbers[2] < numbers[3]);
}
