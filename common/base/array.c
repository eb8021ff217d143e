/* SPDX-License-Identifier: Apache-2.0 */

#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_FIRST_BYTES 64

int array_reserve(void **items, size_t *capacity, size_t n, size_t item_size) {
        size_t wanted = *capacity ? *capacity : ARRAY_FIRST_BYTES / item_size + 1;
        void *grown;

        if (n <= *capacity)
                return 0;

        while (wanted < n) {
                if (wanted > SIZE_MAX / 2 / item_size)
                        return -ENOMEM;
                wanted *= 2;
        }

        grown = realloc(*items, wanted * item_size);
        if (!grown)
                return -ENOMEM;

        *items = grown;
        *capacity = wanted;
        return 0;
}

int compare_uint64(const void *a, const void *b) {
        uint64_t number_a = *(const uint64_t *)a, number_b = *(const uint64_t *)b;

        return (number_a > number_b) - (number_a < number_b);
}
