/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Milliseconds since the Unix epoch. 0 where the system clock stands before it, as it may after a gateway without a
 * battery clock has booted.
 */
int64_t system_clock_wall_ms(void);

/*
 * The same, rounded up: what the store makes versions of. Clients round down, so what one of them stamped within this very
 * millisecond is behind us too, and the version of the first SET in a millisecond has the counter 0. Were both rounded
 * alike, it would be 0 or 1 as the network was slow or fast; published tests compare the counters of two versions.
 */
int64_t system_clock_wall_ms_rounded_up(void);

/* Nanoseconds that never go back, from any beginning. */
int64_t system_clock_mono_ns(void);
