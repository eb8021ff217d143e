/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notifications for the service manager, by the protocol of systemd (sd_notify). Without a service
 * manager the functions do nothing. Errors are ignored.
 */

/* Set the status text that the service manager shows. Only the first line is used. */
void service_notify_status(const char *status);

/* Report that requests are served, or that a reload is complete. */
void service_notify_ready(void);

/* Report that a reload has begun. */
void service_notify_reloading(void);

void service_notify_stopping(void);
