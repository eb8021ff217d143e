/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <string.h>

#include "base/ring.h"

static struct ring ring;

static void setup(void) {
        ring = (struct ring){ .n_max = 4, .n_bytes_max = 100 };
}

static void teardown(void) {
        ring_clear(&ring);
        cr_expect_eq(ring.n_bytes, 0);
}

TestSuite(ring, .init = setup, .fini = teardown);

/* Add a record that consists of this character. */
static void add(char content, size_t n_bytes) {
        char *record = ring_add(&ring, n_bytes);

        cr_assert_not_null(record);
        memset(record, content, n_bytes);
}

static char content(uint64_t number) {
        const char *record = ring_find(&ring, number);

        return record ? *record : '-';
}

Test(ring, numbers_records_from_1) {
        cr_expect_eq(content(1), '-', "nothing was added");
        add('a', 1);
        add('b', 1);
        cr_expect_eq(ring.last, 2);
        cr_expect_eq(content(0), '-');
        cr_expect_eq(content(1), 'a');
        cr_expect_eq(content(2), 'b');
        cr_expect_eq(content(3), '-');
}

Test(ring, removes_the_oldest_above_the_number_limit) {
        for (char each = 'a'; each <= 'f'; each++)
                add(each, 1);
        cr_expect_eq(ring.before_oldest, 2);
        cr_expect_eq(content(2), '-');
        cr_expect_eq(content(3), 'c');
        cr_expect_eq(content(6), 'f');
        cr_expect_eq(ring.n_bytes, 4);
}

Test(ring, removes_the_oldest_above_the_byte_limit) {
        add('a', 40);
        add('b', 40);
        add('c', 60);
        cr_expect_eq(content(1), '-');
        cr_expect_eq(content(2), 'b');
        cr_expect_eq(ring.n_bytes, 100);
}

Test(ring, keeps_the_newest_above_the_byte_limit) {
        add('a', 1);
        add('b', 200);
        cr_expect_eq(content(1), '-');
        cr_expect_eq(content(2), 'b');
        add('c', 1);
        cr_expect_eq(content(2), '-');
        cr_expect_eq(ring.n_bytes, 1);
}

Test(ring, resized_record_keeps_its_content_and_removes_older_ones) {
        add('a', 30);
        add('b', 30);
        add('c', 30);
        cr_assert_not_null(ring_resize(&ring, 2, 60));
        cr_expect_eq(content(1), '-');
        cr_expect_eq(content(2), 'b');
        cr_expect_eq(content(3), 'c');
        cr_expect_eq(ring.n_bytes, 90);
}

Test(ring, resized_record_stays_above_the_byte_limit) {
        add('a', 30);
        add('b', 30);
        cr_assert_not_null(ring_resize(&ring, 1, 90));
        cr_expect_eq(content(1), 'a');
        cr_expect_eq(content(2), 'b');
        add('c', 1);
        cr_expect_eq(content(1), '-');
        cr_expect_eq(ring.n_bytes, 31);
}

Test(ring, removed_record_leaves_its_number) {
        add('a', 10);
        add('b', 10);
        ring_remove(&ring, 1);
        ring_remove(&ring, 1);
        ring_remove(&ring, 3);
        cr_expect_eq(content(1), '-');
        cr_expect_eq(content(2), 'b');
        cr_expect_eq(ring.n_bytes, 10);
        add('c', 10);
        cr_expect_eq(content(3), 'c');
}

Test(ring, numbers_restart_after_clear) {
        add('a', 1);
        ring_clear(&ring);
        cr_expect_eq(content(1), '-');
        add('b', 1);
        cr_expect_eq(ring.last, 1);
        cr_expect_eq(content(1), 'b');
}
