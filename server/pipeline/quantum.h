/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "pipeline/pipeline.h"

/*
 * A quantum limits how long the pipeline works before it returns to its caller, which reads further
 * messages. So a request that arrives behind many requests of another client is served after a few
 * of them, because the queue serves the clients in turn. The work that exceeds the limit is completed.
 *
 * With slow storage a quantum lasts as long as the last commit, at most QUANTUM_NS_MAX: with shorter
 * quanta, few requests would share the cost of each commit.
 */
#define QUANTUM_NS     INT64_C(1000000)
#define QUANTUM_NS_MAX INT64_C(10000000)

struct quantum {
        const struct pipeline_callbacks *callbacks; /* borrowed, for the clock */
        int64_t limit_ns;
        int64_t read_ns; /* the last reading of the clock: the present work began then */
        int64_t used_ns;
};

/*
 * The caller calls at this time. What has passed since the last reading of the clock was not the
 * pipeline's work.
 */
static inline void quantum_resume(struct quantum *quantum, struct now now) {
        if (quantum->read_ns < now.mono_ns)
                quantum->read_ns = now.mono_ns;
}

/* Begin a new quantum. */
static inline void quantum_start(struct quantum *quantum) {
        quantum->used_ns = 0;
}

/* No further work until quantum_start(). */
static inline void quantum_end(struct quantum *quantum) {
        quantum->used_ns = quantum->limit_ns;
}

/* Read the clock, and charge the time since the last reading. Returns this time. */
static inline int64_t quantum_charge(struct quantum *quantum) {
        int64_t begin_ns = quantum->read_ns;

        quantum->read_ns = quantum->callbacks->clock_ns(quantum->callbacks->userdata);
        quantum->used_ns += quantum->read_ns - begin_ns;
        return quantum->read_ns - begin_ns;
}

static inline bool quantum_is_over(const struct quantum *quantum) {
        return quantum->used_ns >= quantum->limit_ns;
}

/* The last commit took this long. */
static inline void quantum_set_limit(struct quantum *quantum, int64_t commit_ns) {
        quantum->limit_ns = commit_ns < QUANTUM_NS ? QUANTUM_NS : commit_ns;
        if (quantum->limit_ns > QUANTUM_NS_MAX)
                quantum->limit_ns = QUANTUM_NS_MAX;
}
