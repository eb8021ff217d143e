/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/bytes.h"

/* Maximum n_numbers of checksum_add_numbers(). */
#define CHECKSUM_NUMBERS_MAX 16

/*
 * Chained checksums: the checksum of one part is the seed of the next. Independent of the byte
 * order.
 */

static inline uint64_t checksum_add_bytes(uint64_t checksum, struct slice bytes) {
        return XXH3_64bits_withSeed(bytes.length ? bytes.data : NULL, bytes.length, checksum);
}

static inline uint64_t checksum_add_numbers(uint64_t checksum, const uint64_t *numbers, size_t n_numbers) {
        uint64_t bytes[CHECKSUM_NUMBERS_MAX];

        ASSERT(n_numbers <= CHECKSUM_NUMBERS_MAX);
        for (size_t i = 0; i < n_numbers; i++)
                bytes[i] = htole64(numbers[i]);
        return XXH3_64bits_withSeed(bytes, n_numbers * sizeof(bytes[0]), checksum);
}
