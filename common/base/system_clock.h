/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Milliseconds since the Unix epoch. Returns 0 if the system clock is set to a time before the epoch, which happens when a
 * gateway without a battery-backed clock boots.
 */
int64_t system_clock_wall_ms(void);

/*
 * As system_clock_wall_ms(), but rounded up. The store derives versions from this value. Clients round down, so a client's
 * timestamp from the same millisecond is lower than the store's clock, and the first version in a millisecond has the
 * counter 0. If the store rounded down, the counter would be 0 or 1, depending on network latency; published conformance
 * tests compare the counters of two versions.
 */
int64_t system_clock_wall_ms_rounded_up(void);

/* Monotonic nanoseconds from an unspecified start (CLOCK_MONOTONIC). */
int64_t system_clock_mono_ns(void);
