/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A histogram of durations: a fixed number of buckets, each twice as wide as the previous one, from
 * 1 us to 33 s. Adding a duration allocates no memory and cannot fail. All zeros is an empty
 * histogram.
 */

/* Upper bounds are 1 us, 2 us, 4 us ...; one more bucket counts the rest. */
#define HISTOGRAM_N_BOUNDS 26

struct histogram {
        uint64_t n_within[HISTOGRAM_N_BOUNDS + 1]; /* above the previous bound, up to this one */
        uint64_t sum_ns;
};

/* A negative duration counts as 0: test control may set the clock back. */
static inline void histogram_add(struct histogram *histogram, int64_t duration_ns) {
        uint64_t ns = duration_ns > 0 ? (uint64_t)duration_ns : 0;
        uint64_t us = (ns + 999) / 1000;
        unsigned int i = us <= 1 ? 0 : 64 - (unsigned int)__builtin_clzll(us - 1);

        histogram->n_within[i < HISTOGRAM_N_BOUNDS ? i : HISTOGRAM_N_BOUNDS]++;
        histogram->sum_ns += ns;
}

/* The upper bound of bucket i in microseconds. i is less than HISTOGRAM_N_BOUNDS. */
static inline uint64_t histogram_bound_us(unsigned int i) {
        return UINT64_C(1) << i;
}
