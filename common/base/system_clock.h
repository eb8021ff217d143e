/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Milliseconds since the Unix epoch. Returns 0 if the system clock is set to a time before the
 * epoch, which happens when a gateway without a battery-backed clock boots.
 */
int64_t system_clock_wall_ms(void);

/*
 * As system_clock_wall_ms(), but rounded up. Versions need this: PROTOCOL.md "Hybrid logical
 * clocks" gives the reason.
 */
int64_t system_clock_wall_ms_rounded_up(void);

/* Monotonic nanoseconds and milliseconds from an unspecified start (CLOCK_MONOTONIC). */
int64_t system_clock_mono_ns(void);
int64_t system_clock_mono_ms(void);

/* Nanoseconds since the boot, also those in which the machine was suspended (CLOCK_BOOTTIME). */
int64_t system_clock_boot_ns(void);

/* Sleep. A signal ends the sleep early. */
void system_clock_sleep_ms(int64_t duration_ms);
