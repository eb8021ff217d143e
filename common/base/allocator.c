/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Map large blocks with mmap(): realloc() then moves pages instead of copying bytes, and free() returns the memory to the
 * system. glibc maps large blocks by default, but raises the threshold whenever a mapped block is freed. After that, an
 * array of millions of items would be copied while requests wait. Setting the threshold disables this adjustment.
 *
 * malloc() still prefers a free chunk of the heap that is large enough. An array in such a chunk is copied when it grows
 * beyond the chunk.
 */

#include "base/allocator.h"

#include <malloc.h>

#define LARGE_BYTES (128 << 10)

/* The heap grows in steps of this size: with smaller steps, many small entries could need one system call each. */
#define STEP_BYTES (1 << 20)

void allocator_init(void) {
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
        mallopt(M_TOP_PAD, STEP_BYTES);
        mallopt(M_TRIM_THRESHOLD, 2 * STEP_BYTES);
}
