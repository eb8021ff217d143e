/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "core/outcome.h"
#include "core/request.h"

/* What has been counted since the start. */

/* Upper bounds of the commit times' histogram, in microseconds; one more counts the rest. */
#define COMMIT_BOUNDS_US                                                                                    \
        { 100, 250, 500, 1000, 2500, 5000, 10000, 50000, 250000, 1000000 }
#define N_COMMIT_BOUNDS 10

struct counters {
        uint64_t n_answers[N_VERBS][N_OUTCOMES]; /* of requests that were executed */
        uint64_t n_insertions;                   /* SETs of keys that were not there */
        uint64_t n_refused;                      /* answered with an error before the engine saw them */
        uint64_t n_unanswerable; /* without a response topic, or with a forbidden one; not executed */
        uint64_t n_expired;      /* past their message expiry; not executed, or not answered */
        uint64_t n_notifications_set, n_notifications_deleted; /* sent */
        uint64_t n_dropped; /* requests, answers and notifications lost for want of memory or room */

        uint64_t n_commits, n_failed_commits;
        uint64_t n_rows; /* committed */
        uint64_t commit_ns;
        uint64_t n_commits_within[N_COMMIT_BOUNDS + 1];
};

/* All that were sent. */
static inline uint64_t counters_n_notifications(const struct counters *counters) {
        return counters->n_notifications_set + counters->n_notifications_deleted;
}
