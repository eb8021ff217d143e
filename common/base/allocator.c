/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is large, and larger than what the heap has free in one piece, is mapped by itself: an array that doubles is moved
 * by its pages, not copied, and what is freed goes back. That is glibc's way too, until something large is freed: from
 * then on it counts as small, and an array of millions of items is copied while requests wait. Setting the limit keeps it
 * where it is.
 *
 * Free in one piece is a step or two at the heap's end, and in its midst whatever neighbours were freed: an array that
 * has found its place there is copied when it grows out of it.
 */

#include "base/allocator.h"

#include <malloc.h>

#define LARGE_BYTES (128 << 10)

/* The rest grows and shrinks by this: by less, each of many small entries might be a system call. */
#define STEP_BYTES (1 << 20)

void allocator_init(void) {
        mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
        mallopt(M_TOP_PAD, STEP_BYTES);
        mallopt(M_TRIM_THRESHOLD, 2 * STEP_BYTES);
}
