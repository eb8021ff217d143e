/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/*
 * What the store has done in the last 15 minutes: a sample every 5 s, in fixed memory. Initialize with
 * zeros. The caller adds the samples; the history has no clock.
 */
#define HEALTH_SAMPLES     180
#define HEALTH_INTERVAL_MS 5000
#define HEALTH_NONE        UINT64_MAX /* nothing was measured */

enum health_value {
        HEALTH_QUEUE_P50_US, /* time until the execution of a request begins, as LATENCY_QUEUE */
        HEALTH_QUEUE_P99_US,
        HEALTH_ENGINE_P99_US,
        HEALTH_COMMIT_P50_US,
        HEALTH_COMMIT_P99_US,
        HEALTH_KEYS,
        HEALTH_BYTES,
        HEALTH_DROPPED, /* requests, replies and notifications, in the interval */
        N_HEALTH_VALUES,
};

struct health_sample {
        uint64_t n_requests[N_VERBS + 1]; /* in the interval; last row: no known verb */
        uint64_t values[N_HEALTH_VALUES];
};

struct health_history {
        struct health_sample samples[HEALTH_SAMPLES]; /* a ring */
        size_t n_samples;                             /* that were added, ever */
        int64_t end_ms;                               /* wall clock at the last sample */

        /* Of the counters, at the last sample. */
        uint64_t n_requests[N_VERBS + 1], n_dropped;
        struct histogram latencies[N_LATENCIES];
};

/*
 * Add a sample: the difference of the counters to the sample before, and the gauges. counters NULL: there
 * is no pipeline, and all values are HEALTH_NONE.
 */
void health_history_add(struct health_history *history, const struct counters *counters,
                        const struct gauges *gauges, int64_t wall_ms);

/* Return sample i of HEALTH_SAMPLES, oldest first, or NULL if it is from before the start. */
const struct health_sample *health_history_sample(const struct health_history *history, size_t i);

/* Number of dropped requests, replies and notifications in all samples. */
uint64_t health_history_n_dropped(const struct health_history *history);
