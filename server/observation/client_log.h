/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "codec/invocation.h"
#include "engine/engine.h"

/*
 * Log lines about single clients: requests that were refused or not executed, and slow watchers. A
 * line has the client, the reason, and the limit with its present value; with shows_keys also the
 * key, if the request was decoded up to it; never a value.
 *
 * Each client gets at most LOG_LIMIT_BURST lines a second, for all reasons together. A keyed hash
 * of the client id selects one of CLIENT_LOG_N_LIMITS rate limits. So memory and lines a second are
 * bounded. A client that sends many refused requests suppresses only the lines of clients that
 * share its rate limit, and cannot choose these clients.
 */
#define CLIENT_LOG_N_LIMITS 32
struct client_log {
        struct log_limit limits[CLIENT_LOG_N_LIMITS];
        bool shows_keys;
};

/*
 * Log an outcome that is an error. Ignore other outcomes, and also a failed commit, which is logged
 * once for its batch.
 */
void client_log_refusal(struct client_log *log, const struct engine *engine, const struct request *request,
                        enum outcome outcome, struct now now);

/* Log a request whose MQTT properties or QoS are wrong. */
void client_log_fault(struct client_log *log, const struct engine *engine,
                      const struct invocation *invocation);

/* Log a request without a response topic, or with a response topic that is not allowed. */
void client_log_invalid_response_topic(struct client_log *log, const struct engine *engine,
                                       const struct request *request);

/*
 * Log that the plugin has disconnected a slow watcher. It counts towards the limit of the client's
 * lines.
 */
void client_log_slow_watcher(struct client_log *log, const struct engine *engine, struct slice client);
