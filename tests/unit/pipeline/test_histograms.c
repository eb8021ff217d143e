/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "pipeline/histograms.h"
#include "unit/support/table.h"

static const struct {
        const char *name;
        int64_t duration_ns;
        unsigned int bucket;
} durations[] = {
        { "none", 0, 0 },
        { "below zero: somebody set a clock", -5, 0 },
        { "the least", 1, 0 },
        { "the first bound", 1000, 0 },
        { "past it", 1001, 1 },
        { "the second bound", 2000, 1 },
        { "past it", 2001, 2 },
        { "a bound in the middle", 1024000, 10 },
        { "past it", 1024001, 11 },
        { "the last bound", INT64_C(33554432000), HISTOGRAM_N_BOUNDS - 1 },
        { "past all", INT64_C(33554432001), HISTOGRAM_N_BOUNDS },
        { "as long as can be", INT64_MAX, HISTOGRAM_N_BOUNDS },
};

Test(histogram, puts_a_duration_into_the_bucket_whose_bound_it_does_not_pass) {
        for (size_t i = 0; i < N_ROWS(durations); i++) {
                struct histogram histogram = { 0 };

                histogram_add(&histogram, durations[i].duration_ns);
                cr_expect_eq(histogram.n_within[durations[i].bucket], 1, ROW(durations, i));
                cr_expect_eq(histogram_n(&histogram), 1, ROW(durations, i));
        }
}

Test(histogram, bounds_are_what_its_buckets_keep) {
        for (unsigned int i = 0; i < HISTOGRAM_N_BOUNDS; i++) {
                int64_t bound_ns = (int64_t)histogram_bound_us(i) * 1000;
                struct histogram histogram = { 0 };

                histogram_add(&histogram, bound_ns);
                histogram_add(&histogram, bound_ns + 1);
                cr_expect_eq(histogram.n_within[i], 1, "%u", i);
                cr_expect_eq(histogram.n_within[i + 1], 1, "%u", i);
        }
}

Test(histogram, adds_up_what_it_was_given) {
        struct histogram histogram = { 0 };

        histogram_add(&histogram, 1500);
        histogram_add(&histogram, -7);
        histogram_add(&histogram, 500);
        cr_expect_eq(histogram.sum_ns, 2000);
        cr_expect_eq(histogram_n(&histogram), 3);
}
