/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "observation/histograms.h"
#include "unit/support/table.h"

static uint64_t n_durations(const struct histogram *histogram) {
        uint64_t n = 0;

        for (unsigned int i = 0; i <= HISTOGRAM_N_BOUNDS; i++)
                n += histogram->n_within[i];
        return n;
}

static const struct {
        const char *name;
        int64_t duration_ns;
        unsigned int bucket;
} durations[] = {
        { "none", 0, 0 },
        { "negative, after a clock was set back", -5, 0 },
        { "the least", 1, 0 },
        { "the first bound", 1000, 0 },
        { "past it", 1001, 1 },
        { "the second bound", 2000, 1 },
        { "past it", 2001, 2 },
        { "a bound in the middle", 1024000, 10 },
        { "past it", 1024001, 11 },
        { "the last bound", INT64_C(33554432000), HISTOGRAM_N_BOUNDS - 1 },
        { "past all", INT64_C(33554432001), HISTOGRAM_N_BOUNDS },
        { "the maximum", INT64_MAX, HISTOGRAM_N_BOUNDS },
};

Test(histogram, duration_counts_in_the_first_bucket_whose_bound_is_not_below_it) {
        for (size_t i = 0; i < N_ROWS(durations); i++) {
                struct histogram histogram = { 0 };

                histogram_add(&histogram, durations[i].duration_ns);
                cr_expect_eq(histogram.n_within[durations[i].bucket], 1, ROW(durations, i));
                cr_expect_eq(n_durations(&histogram), 1, ROW(durations, i));
        }
}

Test(histogram, bounds_match_the_buckets) {
        for (unsigned int i = 0; i < HISTOGRAM_N_BOUNDS; i++) {
                int64_t bound_ns = (int64_t)histogram_bound_us(i) * 1000;
                struct histogram histogram = { 0 };

                histogram_add(&histogram, bound_ns);
                histogram_add(&histogram, bound_ns + 1);
                cr_expect_eq(histogram.n_within[i], 1, "%u", i);
                cr_expect_eq(histogram.n_within[i + 1], 1, "%u", i);
        }
}

Test(histogram, sum_and_count_add_up) {
        struct histogram histogram = { 0 };

        histogram_add(&histogram, 1500);
        histogram_add(&histogram, -7);
        histogram_add(&histogram, 500);
        cr_expect_eq(histogram.sum_ns, 2000);
        cr_expect_eq(n_durations(&histogram), 3);
}
