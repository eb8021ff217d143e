/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Memory for what is small and comes in millions: from slabs of one size each, apart from all else that is allocated.
 * So it takes what was asked for, rounded up by a few bytes, and leaves no gaps behind that nothing fits into.
 *
 * One for the process, as malloc() is; for one thread.
 */

/* What is larger comes from malloc(). */
#define CELL_BYTES_MAX 1024

/*
 * NULL: it is to come from malloc(). It is too large, or there is no memory for another slab, or there had better be
 * none: what is free in the slabs there are is more than what is taken, and fits other sizes only. So whoever chooses
 * the sizes cannot make one slab after the other stay for the sake of one cell.
 */
void *cells_take(size_t size);

/* Releases what cells_take() has given. */
void cells_release(void *cell);
