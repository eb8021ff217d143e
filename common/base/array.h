/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* The number of items of an array, not of a pointer. */
#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Ensure capacity for n items in a heap-allocated array; grows by doubling.
 *
 *     r = array_reserve((void **)&items, &capacity, n_items + 1, sizeof(*items));
 *
 * Returns 0 or -ENOMEM. On error the array is unchanged. The caller frees the array.
 */
int array_reserve(void **items, size_t *capacity, size_t n, size_t item_size);

/* Comparison function for qsort() and bsearch() over arrays of uint64_t. */
int compare_uint64(const void *a, const void *b);
