/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Cells of one size, many to a slab: a block of memory that comes from the system, with others, and goes back when none
 * of its cells is taken any more. A few blocks are kept for the next slab, whichever pool needs it, so that what is
 * taken and released around a slab's end does not ask the system each time. Memory that was not taken yet costs none.
 *
 * The blocks that are kept are the process's, so pools are for one thread.
 */
struct slab {
        struct slab_pool *pool;
        struct slab *previous,
                *next;   /* those of the pool that have room, in the order in which they are filled */
        uint32_t number; /* the owner's */
        uint32_t n_taken;
        uint32_t n_touched;  /* from this cell on none has been taken yet */
        uint32_t first_free; /* of the others, as an offset; each of them holds the next one's; 0: none */
        uint8_t cells[] __attribute__((aligned(64)));
};

struct slab_pool {
        uint32_t cell_size, n_cells; /* of each slab */
        struct slab *with_room;
};

#define SLAB_BYTES     (64 << 10) /* a slab begins at a multiple of it */
#define SLAB_CELLS_MAX (SLAB_BYTES - sizeof(struct slab))

/* The blocks that are kept at most. */
#define SLAB_SPARES_MAX 16

/* cell_size: at least 4, and so that n_cells of them are at most SLAB_CELLS_MAX bytes. */
void slab_pool_init(struct slab_pool *pool, uint32_t cell_size, uint32_t n_cells);

/* A slab more, the last one with room. NULL: there is no memory. */
struct slab *slab_pool_add(struct slab_pool *pool);

/* A cell of the first slab with room, of which there is one. What it holds is anything. */
void *slab_take(struct slab_pool *pool);

/* Takes the n-th cell, and those before it that were never taken are free. False: it was taken before. */
bool slab_take_nth(struct slab *slab, uint32_t n, void **ret_cell);

/* Releases a cell that was taken. True: it was the last one of its slab, which has gone. */
bool slab_release(void *cell);

/* Lets the slab go, whatever is taken. */
void slab_free(struct slab *slab);

/* The slab of a cell that is taken. */
struct slab *slab_of(void *cell);
