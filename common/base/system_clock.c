/* SPDX-License-Identifier: Apache-2.0 */

#include "base/system_clock.h"

#include <time.h>

#include "base/time_units.h"

static int64_t wall_ms(int64_t more_ns) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return now.tv_sec < 0 ? 0 : now.tv_sec * MS_PER_S + (now.tv_nsec + more_ns) / NS_PER_MS;
}

int64_t system_clock_wall_ms(void) {
        return wall_ms(0);
}

int64_t system_clock_wall_ms_rounded_up(void) {
        return wall_ms(NS_PER_MS - 1);
}

static int64_t read_ns(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t system_clock_mono_ns(void) {
        return read_ns(CLOCK_MONOTONIC);
}

int64_t system_clock_mono_ms(void) {
        return system_clock_mono_ns() / NS_PER_MS;
}

int64_t system_clock_boot_ns(void) {
        return read_ns(CLOCK_BOOTTIME);
}

void system_clock_sleep_ms(int64_t duration_ms) {
        nanosleep(&(struct timespec){ duration_ms / MS_PER_S, duration_ms % MS_PER_S * NS_PER_MS }, NULL);
}
