/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One slab is filled before the next one is, and those that were full come last: so where cells go in about the order
 * in which they came, slabs become empty one after the other.
 */

#include "core/slab.h"

#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

#include "common/assert.h"

/* The system is asked for so much at once. */
#define REGION_BYTES (16 * SLAB_BYTES)

static struct slab *spares;
static size_t n_spares;

/* Of the last region, what has not been taken yet: it is not touched before. */
static uint8_t *fresh;
static size_t n_fresh;

/* 1. Blocks */

static uint8_t *map(size_t size) {
        void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return block == MAP_FAILED ? NULL : block;
}

/* The system puts one mapping beside the other, so that the next one most often begins where it should. */
static uint8_t *map_region(void) {
        uint8_t *region = map(REGION_BYTES);
        size_t before;

        if (!region || (uintptr_t)region % SLAB_BYTES == 0)
                return region;

        munmap(region, REGION_BYTES);
        region = map(REGION_BYTES + SLAB_BYTES);
        if (!region)
                return NULL;

        before = SLAB_BYTES - (uintptr_t)region % SLAB_BYTES;
        munmap(region, before);
        if (before < SLAB_BYTES)
                munmap(region + before + REGION_BYTES, SLAB_BYTES - before);
        return region + before;
}

static void *take_fresh(void) {
        if (n_fresh == 0) {
                fresh = map_region();
                if (!fresh)
                        return NULL;
                n_fresh = REGION_BYTES / SLAB_BYTES;
        }
        return fresh + --n_fresh * SLAB_BYTES;
}

static struct slab *take_block(void) {
        struct slab *block = spares;

        if (!block)
                return take_fresh();

        LL_DELETE(spares, block);
        n_spares--;
        return block;
}

/* What the system does not take, for it counts mappings, is kept whatever their number. */
static void release_block(struct slab *block) {
        if (n_spares >= SLAB_SPARES_MAX && munmap(block, SLAB_BYTES) == 0)
                return;

        LL_PREPEND(spares, block);
        n_spares++;
}

/* 2. Slabs */

void slab_pool_init(struct slab_pool *pool, uint32_t cell_size, uint32_t n_cells) {
        ASSERT(cell_size >= sizeof(uint32_t));
        ASSERT(n_cells > 0 && n_cells <= SLAB_CELLS_MAX / cell_size);

        *pool = (struct slab_pool){ .cell_size = cell_size, .n_cells = n_cells };
}

struct slab *slab_pool_add(struct slab_pool *pool) {
        struct slab *slab = take_block();

        if (!slab)
                return NULL;

        *slab = (struct slab){ .pool = pool };
        DL_APPEND2(pool->with_room, slab, previous, next);
        return slab;
}

void slab_free(struct slab *slab) {
        if (slab->n_taken < slab->pool->n_cells)
                DL_DELETE2(slab->pool->with_room, slab, previous, next);
        release_block(slab);
}

struct slab *slab_of(void *cell) {
        return (struct slab *)((uintptr_t)cell & ~(uintptr_t)(SLAB_BYTES - 1));
}

static void count_taken(struct slab *slab) {
        if (++slab->n_taken == slab->pool->n_cells)
                DL_DELETE2(slab->pool->with_room, slab, previous, next);
}

static void put_free(struct slab *slab, void *cell) {
        memcpy(cell, &slab->first_free, sizeof(slab->first_free));
        slab->first_free = (uint32_t)((uint8_t *)cell - (uint8_t *)slab);
}

void *slab_take(struct slab_pool *pool) {
        struct slab *slab = pool->with_room;
        uint8_t *cell;

        ASSERT(slab);

        if (slab->first_free == 0) {
                cell = slab->cells + slab->n_touched++ * pool->cell_size;
        } else {
                cell = (uint8_t *)slab + slab->first_free;
                memcpy(&slab->first_free, cell, sizeof(slab->first_free));
        }
        count_taken(slab);
        return cell;
}

bool slab_take_nth(struct slab *slab, uint32_t n, void **ret_cell) {
        uint32_t cell_size = slab->pool->cell_size;

        ASSERT(n < slab->pool->n_cells);

        if (n < slab->n_touched)
                return false;

        for (; slab->n_touched < n; slab->n_touched++)
                put_free(slab, slab->cells + slab->n_touched * cell_size);
        *ret_cell = slab->cells + slab->n_touched++ * cell_size;
        count_taken(slab);
        return true;
}

bool slab_release(void *cell) {
        struct slab *slab = slab_of(cell);

        ASSERT(slab->n_taken > 0);

        if (slab->n_taken-- == slab->pool->n_cells)
                DL_APPEND2(slab->pool->with_room, slab, previous, next);
        put_free(slab, cell);
        if (slab->n_taken > 0)
                return false;

        slab_free(slab);
        return true;
}
