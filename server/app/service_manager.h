/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notifications for the service manager, by the protocol of systemd (sd_notify). Without a service manager
 * the functions do nothing. Errors are ignored.
 */

/* Set the status text that the service manager shows. Only the first line is used. */
void service_notify_status(const char *status);

/* Requests are served. Also ends a reload. */
void service_notify_ready(void);

/* The configuration is being read again. */
void service_notify_reloading(void);

void service_notify_stopping(void);
