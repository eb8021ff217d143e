/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What the service manager is told, by systemd's notification protocol. Where nobody asked to be told, nothing happens;
 * where it cannot be told, nothing stops.
 */

/* What it shows a person. The first line counts. */
__attribute__((format(printf, 1, 2))) void service_say_status(const char *format, ...);

/* Requests are served; also what ends a reload. */
void service_say_ready(void);

/* The configuration is being read again. */
void service_say_reloading(void);

void service_say_stopping(void);

/* Without this for as long as service_watchdog_ms() it takes us for hung, and starts us anew. 0: it does not watch. */
void service_feed_watchdog(void);
int64_t service_watchdog_ms(void);
