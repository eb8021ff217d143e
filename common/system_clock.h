/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Milliseconds since the Unix epoch. 0 where the system clock stands before it, as it may after a gateway without a
 * battery clock has booted.
 */
int64_t system_clock_wall_ms(void);

/* Nanoseconds that never go back, from any beginning. */
int64_t system_clock_mono_ns(void);
