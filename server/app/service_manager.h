/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The service manager: the text of the status, and the watchdog. sd_notify() and sd_notifyf() do
 * nothing without a service manager; the server ignores their errors.
 */

struct server;

/*
 * Send a status text to the service manager if it has changed: which broker the store serves, or
 * why it serves no requests. Call only while the link is open.
 */
void server_update_status(struct server *server);

/* Notify the watchdog now. */
void server_feed_watchdog(void);

/* Notify the watchdog while requests make progress. */
void server_start_watchdog(struct server *server);
