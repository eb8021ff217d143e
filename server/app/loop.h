/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "engine/engine.h"

/* What each iteration of the loop needs: the clock, the pipeline, the deadline timer, the stop. */

struct server;

/* The current time: the system clocks, unless --control has changed the clock. */
struct now server_now(const struct server *server);

/*
 * Stop when pending requests are finished, or after a timeout. If the function is called several
 * times, the last exit_code other than EXIT_SUCCESS becomes the exit status.
 */
void server_stop(struct server *server, int exit_code);

/* Stop, and let another member lead. reason: for the log. */
void server_give_up(struct server *server, const char *reason);

/*
 * Runs before the loop waits: the callbacks of this iteration have reported their events to the pipeline.
 * Calls pipeline_advance(), the only caller in this process. Updates the read mode of the link and the
 * deadline timer. Completes a stop when no request is pending.
 */
void server_advance(uv_prepare_t *prepare);

/* Close all handles of the loop. Those of the link, the HTTP server and the child are closing already. */
void server_close_handles(struct server *server);
