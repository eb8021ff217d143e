/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Map large blocks with mmap(): realloc() then moves pages instead of copying bytes, and free()
 * returns the memory to the system. glibc maps large blocks by default, but raises the threshold
 * whenever a mapped block is freed. After that, an array of millions of items would be copied while
 * requests wait. Setting the threshold disables this adjustment.
 *
 * The threshold is above the size of a large request or reply, so that these are not mapped. Each
 * is copied several times, and the page faults of new mappings would cost more than the copying: 3
 * ms instead of 0.5 ms for a reply of 1 MB. Arrays below the threshold are copied when they grow:
 * that costs less than 1 ms, once.
 *
 * malloc() still prefers a free chunk of the heap that is large enough. An array in such a chunk is
 * copied when it grows beyond the chunk.
 */

#include "base/allocator.h"

#include <malloc.h>

#define MMAP_THRESHOLD_BYTES (2 << 20)

/* Grow the heap by at least this size, so that only few small allocations need a system call. */
#define TOP_PAD_BYTES (1 << 20)

/*
 * free() retains up to this size at the top of the heap: the next large request uses it without
 * page faults.
 */
#define TRIM_THRESHOLD_BYTES (8 * TOP_PAD_BYTES)

void allocator_init(void) {
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
        mallopt(M_TOP_PAD, TOP_PAD_BYTES);
        mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
}
