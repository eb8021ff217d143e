/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "codec/invocation.h"
#include "engine/engine.h"

/*
 * Says of each request that is refused who sent it, what it asked, and which limit it met at which present value; never
 * a key or a value. Whoever sends many is withheld after a few a second, each reason by itself, and counted.
 */
struct refusal_log {
        struct log_limit outcomes[N_OUTCOMES];
        struct log_limit faults[N_REQUEST_FAULTS];
        struct log_limit unanswerable;
};

/* Does nothing for an outcome that is no error, and for what storing it failed with, which is said once a batch. */
void refusal_log_outcome(struct refusal_log *log, const struct engine *engine, const struct request *request,
                         enum outcome outcome, struct now now);

/* Its envelope is at fault, with this value. */
void refusal_log_fault(struct refusal_log *log, const struct invocation *invocation);

/* It has no response topic, or one that is not allowed. */
void refusal_log_unanswerable(struct refusal_log *log, const struct request *request);
