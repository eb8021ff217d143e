/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "engine/engine.h"

/*
 * The way of a request through the event loop: its message is passed to the pipeline;
 * server_advance() lets the pipeline serve it; a worker thread commits its batch; when the commit has
 * ended, server_advance() lets the pipeline publish the reply. Each step has its time from server_now().
 *
 * userdata is the server.
 */

struct change_set;
struct message;
struct server;

/* The current time: the system clocks, unless --control has changed the clock. */
struct now server_now(const struct server *server);

/* For pipeline_callbacks.clock_ns: the monotonic time of server_now(), which arrival times use, too. */
int64_t server_clock_ns(void *userdata);

/* For link_callbacks.message and link_callbacks.acknowledged: report to the pipeline. */
void server_on_message(void *userdata, const struct message *message);
void server_on_acknowledged(void *userdata, uint16_t id, bool no_subscriber);

/*
 * Runs before the loop waits: the callbacks of this iteration have reported their events to the pipeline.
 * Calls pipeline_advance(), the only caller in this process. Updates the read mode of the link and the
 * deadline timer. Completes a stop when no request is pending.
 */
void server_advance(uv_prepare_t *prepare);

/*
 * For pipeline_callbacks.start_commit: commit the batch on a worker thread, then report the result to the
 * pipeline.
 */
void server_start_commit(void *userdata, const struct change_set *change_set);
