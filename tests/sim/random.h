/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Sebastiano Vigna's splitmix64: small, with the same numbers on every machine. The state is the
 * seed.
 */
static inline uint64_t random_next(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

        z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
        return z ^ z >> 31;
}

/* 0 to n - 1; n is above 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t n) {
        return random_next(state) % n;
}

static inline bool random_chance(uint64_t *state, unsigned int percent) {
        return random_below(state, 100) < percent;
}
