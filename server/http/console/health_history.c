/* SPDX-License-Identifier: Apache-2.0 */

#include "http/console/health_history.h"

/*
 * Estimate a quantile in microseconds, with the durations of a bucket evenly spread over it. later
 * minus earlier are the durations to count. HEALTH_NONE if there is none.
 */
static uint64_t quantile_us(const struct histogram *earlier, const struct histogram *later,
                            double quantile) {
        uint64_t n_total = 0;
        double rank;

        for (size_t i = 0; i <= HISTOGRAM_N_BOUNDS; i++)
                n_total += later->n_within[i] - earlier->n_within[i];
        if (n_total == 0)
                return HEALTH_NONE;

        rank = quantile * (double)n_total;
        for (unsigned int i = 0; i < HISTOGRAM_N_BOUNDS; i++) {
                double n = (double)(later->n_within[i] - earlier->n_within[i]);
                double from_us = i == 0 ? 0 : (double)histogram_bound_us(i - 1);

                if (n > 0 && rank <= n)
                        return (uint64_t)(from_us + ((double)histogram_bound_us(i) - from_us) * rank / n +
                                          0.5);
                rank -= n;
        }
        return histogram_bound_us(HISTOGRAM_N_BOUNDS - 1);
}

static uint64_t count_requests(const struct counters *counters, enum verb verb) {
        uint64_t n = counters_n_of_verb(counters, verb);

        if (verb == VERB_UNKNOWN)
                for (enum request_fault i = REQUEST_FAULT_NONE + 1; i < N_REQUEST_FAULTS; i++)
                        n += counters->n_faults[i];
        return n;
}

/* Store the total, and return by how much it has grown. */
static uint64_t take_growth(uint64_t *last, uint64_t total) {
        uint64_t growth = total - *last;

        *last = total;
        return growth;
}

static void fill_sample(struct health_history *history, const struct counters *counters,
                        const struct gauges *gauges, struct health_sample *sample) {
        static const struct {
                enum latency latency;
                double quantile;
        } latencies[] = {
                [HEALTH_QUEUE_P50_US] = { LATENCY_QUEUE, 0.5 },
                [HEALTH_QUEUE_P99_US] = { LATENCY_QUEUE, 0.99 },
                [HEALTH_ENGINE_P99_US] = { LATENCY_ENGINE, 0.99 },
                [HEALTH_COMMIT_P50_US] = { LATENCY_COMMIT, 0.5 },
                [HEALTH_COMMIT_P99_US] = { LATENCY_COMMIT, 0.99 },
        };

        for (enum verb verb = 0; verb <= VERB_UNKNOWN; verb++)
                sample->n_requests[verb] =
                        take_growth(&history->n_requests[verb], count_requests(counters, verb));
        for (enum health_value i = 0; i <= HEALTH_COMMIT_P99_US; i++)
                sample->values[i] =
                        quantile_us(&history->latencies[latencies[i].latency],
                                    &counters->latencies[latencies[i].latency], latencies[i].quantile);
        for (size_t i = 0; i < N_LATENCIES; i++)
                history->latencies[i] = counters->latencies[i];
        sample->values[HEALTH_KEYS] = gauges->n_keys;
        sample->values[HEALTH_BYTES] = gauges->n_bytes;
        sample->values[HEALTH_DROPPED] = take_growth(&history->n_dropped, counters_n_dropped(counters));
}

void health_history_add(struct health_history *history, const struct counters *counters,
                        const struct gauges *gauges, int64_t wall_ms) {
        struct health_sample *sample = &history->samples[history->n_samples++ % HEALTH_SAMPLES];

        history->end_ms = wall_ms;
        if (counters) {
                fill_sample(history, counters, gauges, sample);
                return;
        }
        for (enum verb verb = 0; verb <= VERB_UNKNOWN; verb++)
                sample->n_requests[verb] = HEALTH_NONE;
        for (enum health_value i = 0; i < N_HEALTH_VALUES; i++)
                sample->values[i] = HEALTH_NONE;
}

const struct health_sample *health_history_sample(const struct health_history *history, size_t i) {
        size_t number = history->n_samples + i; /* plus HEALTH_SAMPLES */

        return number < HEALTH_SAMPLES ? NULL : &history->samples[number % HEALTH_SAMPLES];
}

uint64_t health_history_n_dropped(const struct health_history *history) {
        uint64_t n_dropped = 0;

        for (size_t i = 0; i < HEALTH_SAMPLES; i++) {
                const struct health_sample *sample = health_history_sample(history, i);

                if (sample && sample->values[HEALTH_DROPPED] != HEALTH_NONE)
                        n_dropped += sample->values[HEALTH_DROPPED];
        }
        return n_dropped;
}
