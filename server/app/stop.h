/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The end of the process: by a signal before the loop runs, afterwards by server_stop(). A member of a
 * cluster that gives up lets another member lead.
 */

struct server;

/*
 * Set the signal handlers for the time before the loop runs, while the storage is loaded: SIGTERM and
 * SIGINT end the process at once, with status 0.
 */
void server_set_early_signals(void);

/*
 * Stop when all requests that have arrived have their replies, or after 2 s. If the function is called
 * several times, the last exit_code other than EXIT_SUCCESS becomes the exit status.
 */
void server_stop(struct server *server, int exit_code);

/*
 * Complete a stop if no request is pending any more. Call in each iteration of the loop, between the last
 * request that was executed and the next one that can arrive: its PUBACK is sent on arrival, so the broker
 * would not repeat it to the next process.
 */
void server_stop_if_idle(struct server *server);

/* Stop, and let another member lead. reason: for the log. */
void server_give_up(struct server *server, const char *reason);

/*
 * Close the HTTP server, the console, the private broker, and all handles of the loop. Those of the link
 * are closing already.
 */
void server_close_handles(struct server *server);

/* Let another member lead, after server_give_up(). Call when the loop has ended. */
void server_release_lead(const struct server *server);
