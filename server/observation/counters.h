/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "codec/invocation.h"
#include "engine/outcome.h"
#include "engine/request.h"
#include "observation/histograms.h"

/*
 * Counters since the start of the process, for metrics. "The plugin" is mosquitto_statestore.so in
 * the broker: see common/protocol/companion.h.
 */

/* The durations that are measured; http/metrics.c has a metric for each. */
enum latency {
        LATENCY_QUEUE,   /* from the arrival of the request until its execution */
        LATENCY_ENGINE,  /* decoding and execution */
        LATENCY_COMMIT,  /* a successful commit; counted once per batch */
        LATENCY_REQUEST, /* from the arrival until the reply is published */
        N_LATENCIES,
};

/*
 * Why a request, a reply or a notification was dropped:
 *
 *   X(symbol, label)
 *
 * symbol    DROP_<symbol> is the reason
 * label     name in metrics
 *
 * TOO_MANY_WAITING: a message beyond the limits of the queue; with test control, also a reply
 * beyond the limit of delayed replies.
 */
#define DROP_REASONS(X)                                                                                     \
        X(OUT_OF_MEMORY, "out_of_memory")                                                                   \
        X(TOO_MANY_WAITING, "too_many_waiting")                                                             \
        X(CONNECTION_FULL, "connection_full") /* too many earlier messages are not acknowledged */          \
        X(TOO_LARGE, "too_large")             /* larger than the broker's maximum packet size */            \
        X(NOT_SENDABLE, "not_sendable")       /* its topic or a property is not valid in MQTT */            \
        X(OUTSIDE_FRAME, "outside_frame")     /* the plugin is loaded, and its frames lacked the request */

enum drop_reason {
#define DROP_ENUM(symbol, label) DROP_##symbol,
        DROP_REASONS(DROP_ENUM)
#undef DROP_ENUM
                N_DROPS,
};

struct counters {
        uint64_t n_replies[N_VERBS][N_OUTCOMES]; /* replies to executed requests */
        uint64_t n_repeated;                     /* of n_replies: remembered replies that were sent again */
        uint64_t n_insertions; /* SETs of a key that did not exist; failed batches do not count */

        /* requests that got an error and were not executed; last row: unknown verb */
        uint64_t n_refusals[N_VERBS + 1][N_OUTCOMES];
        uint64_t n_faults[N_REQUEST_FAULTS]; /* the same, for requests that are no valid invocation */

        uint64_t n_invalid_response_topics; /* not executed: no response topic, or an invalid one */
        uint64_t n_expired; /* not executed or no reply: the message expiry interval has passed */
        uint64_t n_notifications_set, n_notifications_deleted; /* published */
        uint64_t n_drops[N_DROPS];
        uint64_t n_slow_watchers; /* disconnected by the plugin */

        uint64_t n_commits, n_failed_commits;
        uint64_t n_rows;                      /* committed */
        uint64_t n_connections;               /* of the store to the broker */
        uint64_t ahead_max_ms, behind_max_ms; /* largest skew of a request's timestamp to the wall clock */
        struct histogram latencies[N_LATENCIES];
};

/* The number of requests with this outcome, executed or not. */
static inline uint64_t counters_n_outcomes(const struct counters *counters, enum verb verb,
                                           enum outcome outcome) {
        return counters->n_refusals[verb][outcome] +
               (verb < N_VERBS ? counters->n_replies[verb][outcome] : 0);
}

/* The number of requests of this verb that were decoded, executed or not. */
static inline uint64_t counters_n_of_verb(const struct counters *counters, enum verb verb) {
        uint64_t n = 0;

        for (enum outcome i = 0; i < N_OUTCOMES; i++)
                n += counters_n_outcomes(counters, verb, i);
        return n;
}

/* The number of dropped requests, replies and notifications. */
static inline uint64_t counters_n_dropped(const struct counters *counters) {
        uint64_t n = 0;

        for (enum drop_reason i = 0; i < N_DROPS; i++)
                n += counters->n_drops[i];
        return n;
}

/* The number of published notifications. */
static inline uint64_t counters_n_notifications(const struct counters *counters) {
        return counters->n_notifications_set + counters->n_notifications_deleted;
}
