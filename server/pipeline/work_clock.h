/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "pipeline/pipeline.h"

/*
 * The clock of the pipeline's work. It is read at the end of each piece of work, which is the start of the
 * next: read_ns is the present time, without another reading of the clock. The time between two readings
 * is charged to the quantum.
 *
 * A quantum limits how long the pipeline works before it returns to its caller, which reads further
 * messages: one quantum on expired keys, and another on requests and the check of registrations.
 * Publishing counts, but is not interrupted. So a request that arrives behind many requests of another
 * client is served after a few of them, because the queue serves the clients in turn. The work that
 * exceeds the limit is completed.
 *
 * With slow storage a quantum lasts as long as the last commit, at most QUANTUM_NS_MAX: with shorter
 * quanta, few requests would share the cost of each commit.
 */
#define QUANTUM_NS     INT64_C(1000000)
#define QUANTUM_NS_MAX INT64_C(10000000)

struct work_clock {
        const struct pipeline_callbacks *callbacks; /* borrowed */
        int64_t read_ns;                            /* monotonic: the present work began then */
        int64_t quantum_ns;
        int64_t used_ns; /* of the quantum */
};

/*
 * The caller calls at this time: begin a new quantum. What has passed since the last reading of the clock
 * was not the pipeline's work.
 */
void work_clock_resume(struct work_clock *clock, struct now now);

/* Read the clock: the present work has ended. Add its time to the quantum, and to *work_ns of the batch. */
void work_clock_charge(struct work_clock *clock, int64_t *work_ns);

/* End the quantum: no further work until work_clock_resume(). */
void work_clock_end(struct work_clock *clock);

/* Return whether the quantum is over. */
bool work_clock_is_over(const struct work_clock *clock);

/* Set the length of the quanta. commit_ns: how long the last commit took; 0: none. */
void work_clock_set_quantum(struct work_clock *clock, int64_t commit_ns);
