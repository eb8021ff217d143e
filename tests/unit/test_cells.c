/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/cells.h"
#include "core/slab.h"

#define N_MANY 100000

/* Far more than the slabs that there may be of each size without regard to how full they are. */
#define N_SLABS 1000

static void *cells[N_MANY];

Test(cells, are_as_large_as_was_asked_for_and_aligned) {
        for (size_t size = 1; size <= CELL_BYTES_MAX; size++) {
                cells[size] = cells_take(size);
                cr_assert_not_null(cells[size], "%zu bytes", size);
                cr_expect_eq((uintptr_t)cells[size] % 8, 0, "%zu bytes", size);
                memset(cells[size], (int)(size % 251), size);
        }
        for (size_t size = 1; size <= CELL_BYTES_MAX; size++) {
                uint8_t expected[CELL_BYTES_MAX];

                memset(expected, (int)(size % 251), size);
                cr_assert_eq(memcmp(cells[size], expected, size), 0, "%zu bytes", size);
                cells_release(cells[size]);
        }
}

static const size_t not_theirs[] = { 0, CELL_BYTES_MAX + 1, 100000, SIZE_MAX };

Test(cells, are_small) {
        for (size_t i = 0; i < sizeof(not_theirs) / sizeof(not_theirs[0]); i++)
                cr_expect_null(cells_take(not_theirs[i]), "%zu bytes", not_theirs[i]);
}

Test(cells, take_what_was_asked_for_rounded_up) {
        for (size_t size = 1; size <= CELL_BYTES_MAX; size++) {
                uint8_t *first = cells_take(size), *second = cells_take(size);

                cr_assert_geq(second, first + size, "%zu bytes", size);
                cr_assert_lt(second, first + size + 8, "%zu bytes", size);
                cells_release(first); /* one of the same eight sizes takes them in the same order */
                cells_release(second);
        }
}

/* Takes the cells of so many slabs. Returns how many those are. */
static size_t take_slabs(size_t n_slabs, size_t size) {
        size_t n = n_slabs * (SLAB_CELLS_MAX / size);

        cr_assert_leq(n, N_MANY);
        for (size_t i = 0; i < n; i++) {
                cells[i] = cells_take(size);
                cr_assert_not_null(cells[i], "cell %zu", i);
        }
        return n;
}

Test(cells, of_one_size_may_be_any_number) {
        size_t n = take_slabs(N_SLABS, CELL_BYTES_MAX);

        for (size_t i = 0; i < n; i++)
                cells_release(cells[i]);
        cr_expect_eq(take_slabs(N_SLABS, 1000), N_SLABS * (SLAB_CELLS_MAX / 1000));
}

/* How many cells of another size there are where of each slab one in n_a_slab cells is still taken. */
static size_t n_of_another_size(size_t n_left_a_slab) {
        size_t a_slab = SLAB_CELLS_MAX / CELL_BYTES_MAX, n = take_slabs(N_SLABS, CELL_BYTES_MAX), n_more = 0;

        for (size_t i = 0; i < n; i++)
                if (i % a_slab >= n_left_a_slab)
                        cells_release(cells[i]);
        while (n_more < N_MANY && cells_take(CELL_BYTES_MAX / 2))
                n_more++;
        return n_more;
}

Test(cells, are_not_for_whoever_leaves_one_in_each_slab_and_goes_on_to_the_next_size) {
        cr_expect_eq(n_of_another_size(1), 0);
}

Test(cells, are_for_all_sizes_where_their_slabs_are_well_filled) {
        cr_expect_eq(n_of_another_size(SLAB_CELLS_MAX / CELL_BYTES_MAX * 3 / 4), N_MANY);
}

Test(cells, that_were_refused_are_there_again_when_the_others_have_gone) {
        size_t n = take_slabs(N_SLABS, CELL_BYTES_MAX), a_slab = SLAB_CELLS_MAX / CELL_BYTES_MAX;

        for (size_t i = 0; i < n; i++)
                if (i % a_slab > 0)
                        cells_release(cells[i]);
        cr_assert_null(cells_take(CELL_BYTES_MAX / 2));
        cr_expect_not_null(cells_take(CELL_BYTES_MAX), "there are free ones of this size");
        for (size_t i = 0; i < n; i += a_slab)
                cells_release(cells[i]);
        cr_expect_not_null(cells_take(CELL_BYTES_MAX / 2));
}
