/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/time_units.h"

static inline int64_t stopwatch_of(clockid_t clock) {
        struct timespec time;

        clock_gettime(clock, &time);
        return time.tv_sec * NS_PER_S + time.tv_nsec;
}

/* Monotonic. */
static inline int64_t stopwatch_ns(void) {
        return stopwatch_of(CLOCK_MONOTONIC);
}

/* Milliseconds since the Unix epoch. */
static inline int64_t stopwatch_wall_ms(void) {
        return stopwatch_of(CLOCK_REALTIME) / NS_PER_MS;
}

/* CPU time of this thread: it does not include the time in which other programs run. */
static inline int64_t stopwatch_cpu_ns(void) {
        return stopwatch_of(CLOCK_THREAD_CPUTIME_ID);
}
