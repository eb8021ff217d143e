/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All measured values, so that percentiles are exact. All zeros is an empty list. */
struct samples {
        uint64_t *values;
        size_t n_values, capacity;
};

void samples_deinit(struct samples *samples);
void samples_add(struct samples *samples, uint64_t value);

/* For samples_percentile(). */
void samples_sort(struct samples *samples);

/* share: from 0 to 1, where 1 is the largest value. Returns 0 if the list is empty. */
uint64_t samples_percentile(const struct samples *samples, double share);
