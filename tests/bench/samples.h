/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Every one of many measurements, kept as it is: no percentile is an estimate. All zeros is an empty one. */
struct samples {
        uint64_t *values;
        size_t n_values, capacity;
};

void samples_deinit(struct samples *samples);
void samples_add(struct samples *samples, uint64_t value);

/* For samples_percentile(). */
void samples_sort(struct samples *samples);

/* share: 0 to 1, the largest value is 1. 0 where there are none. */
uint64_t samples_percentile(const struct samples *samples, double share);
