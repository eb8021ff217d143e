/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/* What each event of the loop needs: the clock, the deadline timer, the read mode, the stop. */

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
 * Call after packets were read, a deadline, the end of a commit, or a reload. Updates the deadline timer
 * and the read mode of the link. Completes a stop when no request is pending. userdata is the server:
 * this function is a callback of the link.
 */
void server_update(void *userdata);

/*
 * Set the deadline timer to the next deadline of the pipeline. Overdue work runs in the next
 * iteration of the loop.
 */
void server_set_deadline_timer(struct server *server);

/* Close all handles of the loop. Those of the link, the HTTP server and the child are closing already. */
void server_close_handles(struct server *server);
