/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Zipf as in Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (1994): one power
 * a draw, after one sum over all keys.
 */

#include "bench/keys.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "bench/fail.h"

#define KEY_PREFIX "bench-00"

#define ZIPF_EXPONENT 0.99

/* A prime: rank * SCATTER modulo the number of keys differs for each rank. */
#define SCATTER UINT64_C(2654435761)

struct zipf {
        double n_keys;
        double zeta;        /* the sum of 1/rank^exponent over all ranks */
        double zeta_of_two; /* the same sum over the first two ranks */
        double alpha, eta;
};

void key_write(uint8_t text[KEY_LENGTH], uint64_t number) {
        memcpy(text, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
        for (uint8_t *at = text + KEY_LENGTH; at > text + sizeof(KEY_PREFIX) - 1; number /= 10)
                *--at = (uint8_t)('0' + number % 10);
}

enum key_order key_order_from_string(const char *name) {
        static const char *const names[] = {
                [KEYS_UNIFORM] = "uniform", [KEYS_ZIPF] = "zipf", [KEYS_ONCE] = "once"
        };

        for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
                if (strcmp(name, names[i]) == 0)
                        return (enum key_order)i;
        fail("uniform, zipf or once was expected, not \"%s\"", name);
}

static void zipf_init(struct zipf *zipf, uint64_t n_keys) {
        zipf->n_keys = (double)n_keys;
        zipf->zeta = 0;
        for (uint64_t rank = 1; rank <= n_keys; rank++)
                zipf->zeta += pow(1 / (double)rank, ZIPF_EXPONENT);
        zipf->zeta_of_two = 1 + pow(0.5, ZIPF_EXPONENT);
        zipf->alpha = 1 / (1 - ZIPF_EXPONENT);
        zipf->eta = (1 - pow(2 / zipf->n_keys, 1 - ZIPF_EXPONENT)) / (1 - zipf->zeta_of_two / zipf->zeta);
}

/* A rank from 0; u: uniform, 0 to below 1. */
static uint64_t zipf_rank(const struct zipf *zipf, double u) {
        double scaled = u * zipf->zeta;

        if (scaled < 1)
                return 0;
        if (scaled < zipf->zeta_of_two)
                return 1;
        return (uint64_t)(zipf->n_keys * pow(zipf->eta * u - zipf->eta + 1, zipf->alpha));
}

static uint32_t draw_zipf(const struct zipf *zipf, uint64_t n_keys, uint64_t *state) {
        uint64_t rank = zipf_rank(zipf, (double)(random_next(state) >> 11) * 0x1p-53);

        return (uint32_t)((rank < n_keys ? rank : n_keys - 1) * SCATTER % n_keys);
}

void key_sequence_init(struct key_sequence *sequence, enum key_order order, uint64_t n_keys,
                       size_t n_numbers, uint64_t seed) {
        uint64_t state = seed * 2 + 1;
        struct zipf zipf = { 0 };

        *sequence = (struct key_sequence){ .numbers = malloc(n_numbers * sizeof(uint32_t)),
                                           .n_numbers = n_numbers };
        if (!sequence->numbers)
                fail("out of memory");

        if (order == KEYS_ZIPF)
                zipf_init(&zipf, n_keys);
        for (size_t i = 0; i < n_numbers; i++)
                sequence->numbers[i] = order == KEYS_ONCE   ? (uint32_t)(i % n_keys)
                                       : order == KEYS_ZIPF ? draw_zipf(&zipf, n_keys, &state)
                                                            : (uint32_t)(random_next(&state) % n_keys);
}

void key_sequence_deinit(struct key_sequence *sequence) {
        free(sequence->numbers);
        *sequence = (struct key_sequence){ 0 };
}
