/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "codec/invocation.h"
#include "engine/outcome.h"
#include "engine/request.h"
#include "pipeline/histograms.h"

/* What has been counted since the start. */

/* What a request's time is made of. */
enum latency_stage {
        STAGE_QUEUE,  /* from its arrival until its turn */
        STAGE_ENGINE, /* decoding and executing it */
        STAGE_COMMIT, /* storing its batch; counted once a batch */
        STAGE_WHOLE,  /* from its arrival until its answer is given to the connection */
        N_STAGES,
};

/* Why a request, an answer or a notification was lost. */
enum drop_reason {
        DROP_OUT_OF_MEMORY,
        DROP_TOO_MANY_WAITING, /* requests past PIPELINE_INBOX_MAX, or answers that a test delays */
        DROP_CONNECTION_FULL,  /* the broker has not acknowledged what was sent before */
        DROP_TOO_LARGE,        /* for the broker */
        DROP_NOT_SENDABLE,     /* text that MQTT cannot carry */
        DROP_UNVERIFIED,       /* requests that the plugin in the broker does not vouch for */
        DROP_REPEATED,         /* requests that the broker delivered, or a client published, once more */
        N_DROPS,
};

struct counters {
        uint64_t n_answers[N_VERBS][N_OUTCOMES]; /* of requests that were executed, as it was stored */
        uint64_t n_repeated;   /* of these, requests that came again and were not executed */
        uint64_t n_insertions; /* of SETs, those that found no such key, whatever came of them */

        uint64_t n_refused; /* answered with an error before the engine saw them: */
        uint64_t n_refusals[N_VERBS + 1][N_OUTCOMES]; /* the last row: their verb is not known */
        uint64_t n_faults[N_REQUEST_FAULTS];

        uint64_t n_unanswerable; /* without a response topic, or with a forbidden one; not executed */
        uint64_t n_expired;      /* past their message expiry; not executed, or not answered */
        uint64_t n_notifications_set, n_notifications_deleted; /* sent */
        uint64_t n_drops[N_DROPS];

        uint64_t n_commits, n_failed_commits;
        uint64_t n_rows; /* committed */
        uint64_t n_connections;
        uint64_t ahead_max_ms, behind_max_ms; /* of timestamps, against our wall clock */
        struct histogram latencies[N_STAGES];
};

/* Requests with this outcome, executed or not; verb: N_VERBS where it is not known. */
static inline uint64_t counters_n_outcomes(const struct counters *counters, enum verb verb,
                                           enum outcome outcome) {
        return counters->n_refusals[verb][outcome] +
               (verb < N_VERBS ? counters->n_answers[verb][outcome] : 0);
}

/* All that were sent. */
static inline uint64_t counters_n_notifications(const struct counters *counters) {
        return counters->n_notifications_set + counters->n_notifications_deleted;
}

/* All that was lost. */
static inline uint64_t counters_n_dropped(const struct counters *counters) {
        uint64_t n = 0;

        for (int i = 0; i < N_DROPS; i++)
                n += counters->n_drops[i];
        return n;
}

/* A request's timestamp was seen. */
static inline void counters_add_skew(struct counters *counters, int64_t timestamp_ms, int64_t wall_ms) {
        uint64_t *max = timestamp_ms > wall_ms ? &counters->ahead_max_ms : &counters->behind_max_ms;
        uint64_t skew_ms = timestamp_ms > wall_ms ? (uint64_t)timestamp_ms - (uint64_t)wall_ms
                                                  : (uint64_t)wall_ms - (uint64_t)timestamp_ms;

        if (skew_ms > *max)
                *max = skew_ms;
}
