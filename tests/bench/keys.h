/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* The keys of requests: their text, and their order. */

#define KEY_LENGTH 20

/* Write the key of this number, without a NUL. number: below 10^12. */
void key_write(uint8_t text[KEY_LENGTH], uint64_t number);

enum key_order {
        KEYS_UNIFORM,
        KEYS_ZIPF, /* exponent 0.99, as in YCSB; the frequent keys are scattered */
        KEYS_ONCE, /* each once, in ascending order */
};

/* uniform, zipf, once. Anything else ends the program. */
enum key_order key_order_from_string(const char *name);

/*
 * Numbers below n_keys in this order. They are drawn in advance, because drawing would cost time
 * that is measured. After the last number the sequence starts again.
 */
struct key_sequence {
        uint32_t *numbers;
        size_t n_numbers, next;
};

/* n_keys from 1 to 2^32-1. The same seed gives the same numbers. */
void key_sequence_init(struct key_sequence *sequence, enum key_order order, uint64_t n_keys,
                       size_t n_numbers, uint64_t seed);
void key_sequence_deinit(struct key_sequence *sequence);

static inline uint32_t key_sequence_next(struct key_sequence *sequence) {
        uint32_t number = sequence->numbers[sequence->next++];

        if (sequence->next == sequence->n_numbers)
                sequence->next = 0;
        return number;
}

/* Return the next random number (xorshift64*). *state must not be 0. */
static inline uint64_t random_next(uint64_t *state) {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        return *state * UINT64_C(2685821657736338717);
}
