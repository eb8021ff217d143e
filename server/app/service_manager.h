/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Notifications for the service manager, by the protocol of systemd (sd_notify). Without a service manager
 * the functions do nothing. Errors are ignored.
 */

/* Set the status text that the service manager shows. Only the first line is used. */
__attribute__((format(printf, 1, 2))) void service_say_status(const char *format, ...);

/* Requests are served. Also ends a reload. */
void service_say_ready(void);

/* The configuration is being read again. */
void service_say_reloading(void);

void service_say_stopping(void);

/*
 * The service manager restarts the service after service_watchdog_ms() without this notification. 0: no
 * watchdog.
 */
void service_feed_watchdog(void);
int64_t service_watchdog_ms(void);
