/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "codec/invocation.h"
#include "engine/engine.h"

/*
 * Logs each refused request: its client, its command, the reason, and the limit with its present value; never a key or a
 * value.
 *
 * Each client gets at most LOG_LIMIT_BURST lines a second, for all reasons together. A keyed hash of the client id selects one
 * of REFUSAL_LOG_N_LIMITS limits, so several clients may share a limit. So memory and lines a second are bounded. A client
 * that sends many refused requests suppresses only lines of clients that share its limit, and cannot choose these clients.
 */
#define REFUSAL_LOG_N_LIMITS 32
struct refusal_log {
        struct log_limit limits[REFUSAL_LOG_N_LIMITS];
};

/* Log an outcome that is an error. Ignore other outcomes, and also a failed commit, which is logged once for its batch. */
void refusal_log_outcome(struct refusal_log *log, const struct engine *engine, const struct request *request,
                         enum outcome outcome, struct now now);

/* Log a request whose MQTT properties or QoS are wrong. */
void refusal_log_fault(struct refusal_log *log, const struct engine *engine,
                       const struct invocation *invocation);

/* Log a request without a response topic, or with a response topic that is not allowed. */
void refusal_log_unanswerable(struct refusal_log *log, const struct engine *engine,
                              const struct request *request);

/* Log the disconnect of a slow watcher (COMPANION_SLOW_WATCHER). It counts towards the limit of the client's lines. */
void refusal_log_slow_watcher(struct refusal_log *log, const struct engine *engine, struct slice client);
