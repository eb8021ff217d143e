/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "codec/invocation.h"
#include "engine/outcome.h"
#include "engine/request.h"
#include "pipeline/histograms.h"

/*
 * Counters since the start of the process, for metrics. "The plugin" is mosquitto_statestore.so in the broker: see
 * common/protocol/companion.h.
 */

/* The stages of a request, whose durations are measured. */
enum latency_stage {
        STAGE_QUEUE,  /* from the arrival of the request until its execution */
        STAGE_ENGINE, /* decoding and execution */
        STAGE_COMMIT, /* the commit; counted once per batch */
        STAGE_WHOLE,  /* from the arrival until the reply is published */
        N_STAGES,
};

/* Why a request, a reply or a notification was dropped. */
enum drop_reason {
        DROP_OUT_OF_MEMORY,
        /* Messages beyond the limits of the inbox. With test control: also replies beyond the limit of delayed replies. */
        DROP_TOO_MANY_WAITING,
        DROP_CONNECTION_FULL, /* too many earlier messages are not acknowledged */
        DROP_TOO_LARGE,       /* larger than the broker's maximum packet size */
        DROP_NOT_SENDABLE,    /* a topic or property that is not valid in MQTT */
        DROP_UNVERIFIED,      /* requests that the plugin did not verify */
        DROP_REPEATED,        /* requests whose sequence number was accepted before */
        N_DROPS,
};

struct counters {
        uint64_t n_replies[N_VERBS][N_OUTCOMES]; /* replies to executed requests */
        uint64_t n_repeated;                     /* of n_replies: replies from the remembered ones */
        uint64_t n_insertions; /* executed SETs whose key did not exist, except of failed batches */

        uint64_t n_refused;                           /* requests answered with an error, not executed */
        uint64_t n_refusals[N_VERBS + 1][N_OUTCOMES]; /* of n_refused; last row: unknown verb */
        uint64_t n_faults[N_REQUEST_FAULTS];          /* of n_refused */

        uint64_t n_unanswerable; /* not executed: no response topic, or an invalid one */
        uint64_t
                n_expired; /* not executed, or not answered, because the message expiry interval has passed */
        uint64_t n_notifications_set, n_notifications_deleted; /* published */
        uint64_t n_drops[N_DROPS];
        uint64_t n_slow_watchers; /* disconnected by the plugin */

        uint64_t n_commits, n_failed_commits;
        uint64_t n_rows;                      /* committed */
        uint64_t n_connections;               /* of the store to the broker */
        uint64_t ahead_max_ms, behind_max_ms; /* largest skew of a request's timestamp to the wall clock */
        struct histogram latencies[N_STAGES];
};

/* The number of requests with this outcome, executed or not. */
static inline uint64_t counters_n_outcomes(const struct counters *counters, enum verb verb,
                                           enum outcome outcome) {
        return counters->n_refusals[verb][outcome] +
               (verb < N_VERBS ? counters->n_replies[verb][outcome] : 0);
}

/* The number of published notifications. */
static inline uint64_t counters_n_notifications(const struct counters *counters) {
        return counters->n_notifications_set + counters->n_notifications_deleted;
}

/* The number of dropped messages. */
static inline uint64_t counters_n_dropped(const struct counters *counters) {
        uint64_t n = 0;

        for (int i = 0; i < N_DROPS; i++)
                n += counters->n_drops[i];
        return n;
}
