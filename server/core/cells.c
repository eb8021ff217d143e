/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cells.h"

#include "core/slab.h"

#define CELL_STEP 8
#define N_SIZES   (CELL_BYTES_MAX / CELL_STEP)

static struct slab_pool pools[N_SIZES];
static size_t n_slabs, n_bytes_taken;

/* Whether another slab leaves at least half of all of them taken, a slab of each size apart. */
static bool may_add(void) {
        return n_slabs < N_SIZES + 2 * n_bytes_taken / SLAB_BYTES;
}

static bool add(size_t number) {
        struct slab_pool *pool = &pools[number];
        uint32_t cell_size = (uint32_t)(number + 1) * CELL_STEP;

        if (!may_add())
                return false;
        if (pool->n_cells == 0)
                slab_pool_init(pool, cell_size, SLAB_CELLS_MAX / cell_size);
        if (!slab_pool_add(pool))
                return false;

        n_slabs++;
        return true;
}

void *cells_take(size_t size) {
        size_t number = (size - 1) / CELL_STEP;

        if (number >= N_SIZES || (!pools[number].with_room && !add(number)))
                return NULL;

        n_bytes_taken += pools[number].cell_size;
        return slab_take(&pools[number]);
}

void cells_release(void *cell) {
        n_bytes_taken -= slab_of(cell)->pool->cell_size;
        if (slab_release(cell))
                n_slabs--;
}
