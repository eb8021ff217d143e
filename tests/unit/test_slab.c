/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/slab.h"

#define CELL_SIZE 24
#define N_CELLS   100
#define N_MANY    (SLAB_SPARES_MAX + 10)

/* A cell that is taken has its own address in each byte that may be. */
static void fill(void *cell, size_t size) {
        memset(cell, (int)((uintptr_t)cell >> 3), size);
}

static bool is_filled(void *cell, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (((uint8_t *)cell)[i] != (uint8_t)((uintptr_t)cell >> 3))
                        return false;
        return true;
}

static void *take(struct slab_pool *pool) {
        if (!pool->with_room)
                cr_assert_not_null(slab_pool_add(pool));
        return slab_take(pool);
}

/* Whether the block is still ours. */
static bool is_mapped(void *block) {
        unsigned char pages[SLAB_BYTES / 4096];

        return mincore(block, SLAB_BYTES, pages) == 0;
}

static const struct {
        uint32_t cell_size, n_cells;
} pools[] = {
        { 4, SLAB_CELLS_MAX / 4 }, { CELL_SIZE, N_CELLS }, { 48, SLAB_CELLS_MAX / 48 }, { 1000, 1 },
        { SLAB_CELLS_MAX / 2, 2 }, { SLAB_CELLS_MAX, 1 },
};

Test(slab, has_cells_apart_from_each_other_that_all_lead_to_it) {
        for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
                static void *cells[SLAB_BYTES];
                uint32_t size = pools[i].cell_size, n = pools[i].n_cells;
                struct slab_pool pool;
                struct slab *slab;

                slab_pool_init(&pool, size, n);
                slab = slab_pool_add(&pool);
                cr_assert_not_null(slab);
                cr_expect_eq((uintptr_t)slab % SLAB_BYTES, 0);
                for (uint32_t cell = 0; cell < n; cell++) {
                        cr_assert_eq(pool.with_room, slab, "pool %zu, cell %u", i, cell);
                        cells[cell] = slab_take(&pool);
                        cr_assert_eq(slab_of(cells[cell]), slab, "pool %zu, cell %u", i, cell);
                        fill(cells[cell], size);
                }
                cr_expect_null(pool.with_room, "pool %zu", i);
                for (uint32_t cell = 0; cell < n; cell++) {
                        cr_assert(is_filled(cells[cell], size), "pool %zu, cell %u", i, cell);
                        cr_assert_eq(slab_release(cells[cell]), cell == n - 1, "pool %zu, cell %u", i, cell);
                }
                cr_expect_null(pool.with_room, "pool %zu", i);
        }
}

Test(slab, gives_what_was_released_again_and_leaves_the_others_alone) {
        void *cells[N_CELLS], *again;
        struct slab_pool pool;

        slab_pool_init(&pool, CELL_SIZE, N_CELLS);
        for (size_t i = 0; i < N_CELLS; i++) {
                cells[i] = take(&pool);
                fill(cells[i], CELL_SIZE);
        }
        for (size_t i = 0; i < N_CELLS; i += 3)
                slab_release(cells[i]);
        for (size_t i = 0; i < N_CELLS; i += 3) {
                cr_assert_not_null(pool.with_room);
                again = slab_take(&pool);
                cr_assert_eq(((uint8_t *)again - (uint8_t *)cells[0]) / CELL_SIZE % 3, 0);
                fill(again, CELL_SIZE);
        }
        cr_expect_null(pool.with_room);
        for (size_t i = 0; i < N_CELLS; i++)
                cr_assert(is_filled(cells[i], CELL_SIZE), "cell %zu", i);
        slab_free(slab_of(cells[0]));
}

Test(slab, is_filled_before_the_next_one_and_those_that_were_full_come_last) {
        void *cells[3 * N_CELLS];
        struct slab_pool pool;

        slab_pool_init(&pool, CELL_SIZE, N_CELLS);
        for (size_t i = 0; i < 3 * N_CELLS - 10; i++)
                cells[i] = take(&pool);
        slab_release(cells[N_CELLS]);
        slab_release(cells[0]);
        for (size_t i = 0; i < 10; i++)
                cr_assert_eq(slab_of(slab_take(&pool)), slab_of(cells[2 * N_CELLS]));
        cr_expect_eq(slab_take(&pool), cells[N_CELLS]);
        cr_expect_eq(slab_take(&pool), cells[0]);
        cr_expect_null(pool.with_room);
        for (size_t i = 0; i < 3; i++)
                slab_free(slab_of(cells[i * N_CELLS]));
}

Test(slab, can_have_a_cell_taken_by_its_number_and_those_before_it_are_free) {
        bool is_taken[N_CELLS] = { false };
        struct slab_pool pool;
        struct slab *slab;
        void *cell, *first;

        slab_pool_init(&pool, CELL_SIZE, N_CELLS);
        slab = slab_pool_add(&pool);
        cr_assert_not_null(slab);
        first = slab->cells;
        cr_assert(slab_take_nth(slab, 7, &cell));
        cr_expect_eq(cell, (uint8_t *)first + 7 * CELL_SIZE);
        cr_assert(slab_take_nth(slab, 8, &cell));
        cr_expect_not(slab_take_nth(slab, 8, &cell));
        cr_expect_not(slab_take_nth(slab, 3, &cell), "it was passed over");
        cr_assert(slab_take_nth(slab, N_CELLS - 1, &cell));
        is_taken[7] = is_taken[8] = is_taken[N_CELLS - 1] = true;

        while (pool.with_room) {
                size_t number = (size_t)((uint8_t *)slab_take(&pool) - (uint8_t *)first) / CELL_SIZE;

                cr_assert_lt(number, N_CELLS);
                cr_assert_not(is_taken[number], "cell %zu", number);
                is_taken[number] = true;
        }
        cr_expect_eq(slab->n_taken, N_CELLS);
        slab_free(slab);
}

Test(slab, is_kept_when_it_is_empty_where_few_are_and_given_back_else) {
        static void *cells[N_MANY];
        struct slab_pool pool, other;
        size_t n_mapped = 0;

        slab_pool_init(&pool, SLAB_CELLS_MAX, 1);
        slab_pool_init(&other, CELL_SIZE, N_CELLS);
        for (size_t i = 0; i < N_MANY; i++)
                cells[i] = take(&pool);
        for (size_t i = 0; i < N_MANY; i++)
                slab_release(cells[i]);
        for (size_t i = 0; i < N_MANY; i++)
                n_mapped += is_mapped(slab_of(cells[i]));
        cr_expect_eq(n_mapped, SLAB_SPARES_MAX);

        cells[0] = slab_of(take(&other)); /* one that was kept, whatever it was for */
        n_mapped = 0;
        for (size_t i = 1; i < N_MANY; i++)
                n_mapped += slab_of(cells[i]) == cells[0];
        cr_expect_eq(n_mapped, 1);
        slab_free(cells[0]);
}

Test(slab, comes_from_the_system_with_others_that_take_no_memory_yet) {
        unsigned char pages[SLAB_BYTES / 4096];
        struct slab_pool pool;
        uint8_t *first, *second;

        slab_pool_init(&pool, SLAB_CELLS_MAX, 1);
        first = (uint8_t *)slab_of(take(&pool));
        second = (uint8_t *)slab_of(take(&pool));
        cr_assert_eq(first - second, SLAB_BYTES);
        cr_assert_eq(mincore(second - SLAB_BYTES, SLAB_BYTES, pages), 0);
        for (size_t i = 0; i < sizeof(pages); i++)
                cr_expect_not(pages[i] & 1, "page %zu", i);
        slab_free((struct slab *)first);
        slab_free((struct slab *)second);
}

Test(slab, is_not_added_without_memory) {
        struct rlimit before, none = { 0, 0 };
        struct slab_pool pool;
        struct slab *slab;

        slab_pool_init(&pool, CELL_SIZE, N_CELLS);
        cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
        none.rlim_max = before.rlim_max;
        cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
        slab = slab_pool_add(&pool);
        cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
        cr_expect_null(slab);
        cr_expect_null(pool.with_room);
        slab_free(slab_of(take(&pool)));
}
