/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "base/time_units.h"
#include "http/console/health_history.h"

static struct health_history history;
static struct counters counters;
static struct gauges gauges;

static void add(int64_t wall_ms) {
        health_history_add(&history, &counters, &gauges, wall_ms);
}

static uint64_t value(size_t i, enum health_value of) {
        const struct health_sample *sample = health_history_sample(&history, i);

        cr_assert_not_null(sample);
        return sample->values[of];
}

Test(health_history, is_empty_before_the_start) {
        cr_expect_null(health_history_sample(&history, 0));
        cr_expect_null(health_history_sample(&history, HEALTH_SAMPLES - 1));
        add(7);
        cr_expect_null(health_history_sample(&history, HEALTH_SAMPLES - 2));
        cr_expect_not_null(health_history_sample(&history, HEALTH_SAMPLES - 1));
        cr_expect_eq(history.end_ms, 7);
}

Test(health_history, counts_each_interval_by_itself) {
        const size_t last = HEALTH_SAMPLES - 1;

        counters.n_replies[VERB_SET][0] = 3;
        counters.n_refusals[VERB_SET][0] = 1;
        counters.n_faults[REQUEST_FAULT_NONE + 1] = 5;
        counters.n_drops[0] = 2;
        gauges.n_keys = 9;
        add(0);
        counters.n_replies[VERB_SET][0] = 10;
        gauges.n_keys = 8;
        add(0);

        cr_expect_eq(health_history_sample(&history, last - 1)->n_requests[VERB_SET], 4);
        cr_expect_eq(health_history_sample(&history, last)->n_requests[VERB_SET], 7);
        cr_expect_eq(health_history_sample(&history, last - 1)->n_requests[VERB_UNKNOWN], 5);
        cr_expect_eq(value(last - 1, HEALTH_DROPPED), 2);
        cr_expect_eq(value(last, HEALTH_DROPPED), 0);
        cr_expect_eq(value(last - 1, HEALTH_KEYS), 9);
        cr_expect_eq(value(last, HEALTH_KEYS), 8);
        cr_expect_eq(health_history_n_dropped(&history), 2);
}

Test(health_history, forgets_what_is_older_than_its_samples) {
        for (uint64_t i = 0; i < HEALTH_SAMPLES + 5; i++) {
                gauges.n_keys = i;
                counters.n_drops[0] += i == 2;
                add(0);
        }
        cr_expect_eq(value(0, HEALTH_KEYS), 5);
        cr_expect_eq(value(HEALTH_SAMPLES - 1, HEALTH_KEYS), HEALTH_SAMPLES + 4);
        cr_expect_eq(health_history_n_dropped(&history), 0);
}

Test(health_history, has_nothing_without_a_pipeline) {
        health_history_add(&history, NULL, &gauges, 0);
        cr_expect_eq(value(HEALTH_SAMPLES - 1, HEALTH_KEYS), HEALTH_NONE);
        cr_expect_eq(health_history_sample(&history, HEALTH_SAMPLES - 1)->n_requests[VERB_GET], HEALTH_NONE);
        cr_expect_eq(health_history_n_dropped(&history), 0);
}

Test(health_history, quantiles_are_of_the_interval) {
        const size_t last = HEALTH_SAMPLES - 1;

        for (int i = 0; i < 100; i++)
                histogram_add(&counters.latencies[LATENCY_QUEUE], 3 * NS_PER_MS);
        add(0);
        for (int i = 0; i < 98; i++)
                histogram_add(&counters.latencies[LATENCY_QUEUE], 100000); /* 64 to 128 us */
        for (int i = 0; i < 2; i++)
                histogram_add(&counters.latencies[LATENCY_QUEUE], 10 * NS_PER_MS); /* 8192 to 16384 us */
        add(0);

        cr_expect_eq(value(last - 1, HEALTH_QUEUE_P50_US), 3072);
        cr_expect_eq(value(last, HEALTH_QUEUE_P50_US), 97); /* 64 + 64 * 50 / 98 */
        cr_expect_eq(value(last, HEALTH_QUEUE_P99_US), 12288);
        cr_expect_eq(value(last, HEALTH_COMMIT_P50_US), HEALTH_NONE);
}

Test(health_history, quantile_beyond_the_last_bound_is_that_bound) {
        histogram_add(&counters.latencies[LATENCY_QUEUE], 60 * NS_PER_S);
        add(0);
        cr_expect_eq(value(HEALTH_SAMPLES - 1, HEALTH_QUEUE_P50_US),
                     histogram_bound_us(HISTOGRAM_N_BOUNDS - 1));
}
