/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/samples.h"

#include <stdlib.h>

#include "base/array.h"
#include "bench/fail.h"

void samples_deinit(struct samples *samples) {
        free(samples->values);
        *samples = (struct samples){ 0 };
}

void samples_add(struct samples *samples, uint64_t value) {
        if (array_reserve((void **)&samples->values, &samples->capacity, samples->n_values + 1,
                          sizeof(*samples->values)) < 0)
                fail("out of memory");
        samples->values[samples->n_values++] = value;
}

void samples_sort(struct samples *samples) {
        if (samples->n_values > 0)
                qsort(samples->values, samples->n_values, sizeof(*samples->values), compare_uint64);
}

uint64_t samples_percentile(const struct samples *samples, double share) {
        return samples->n_values == 0 ? 0
                                      : samples->values[(size_t)(share * (double)(samples->n_values - 1))];
}
