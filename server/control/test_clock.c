/* SPDX-License-Identifier: Apache-2.0 */

#include "control/test_clock.h"

#include <errno.h>

#include "base/time_units.h"

struct now test_clock_read(const struct test_clock *clock, struct now real) {
        if (clock->is_frozen)
                return clock->frozen;

        /*
         * After freeze and resume the offset can be negative. If the system clock is then set back
         * to about 1970, return 0.
         */
        real.wall_ms = real.wall_ms > -clock->wall_offset_ms ? real.wall_ms + clock->wall_offset_ms : 0;
        real.mono_ns += clock->mono_offset_ns;
        return real;
}

int64_t test_clock_remaining_ns(const struct test_clock *clock, int64_t deadline_ns, struct now real) {
        int64_t remaining_ns;

        if (deadline_ns == INT64_MAX)
                return INT64_MAX;

        remaining_ns = deadline_ns - test_clock_read(clock, real).mono_ns;
        return clock->is_frozen && remaining_ns > 0 ? INT64_MAX : remaining_ns;
}

int test_clock_advance(struct test_clock *clock, int64_t duration_ms) {
        /* mono_offset_ns can be negative after the clock was frozen and resumed. */
        int64_t advanced_ns = clock->mono_offset_ns > 0 ? clock->mono_offset_ns : 0;

        if (duration_ms > TEST_CLOCK_ADVANCE_MAX_MS - advanced_ns / NS_PER_MS)
                return -ERANGE;

        clock->wall_offset_ms += duration_ms;
        clock->mono_offset_ns += duration_ms * NS_PER_MS;
        if (clock->is_frozen) {
                clock->frozen.wall_ms += duration_ms;
                clock->frozen.mono_ns += duration_ms * NS_PER_MS;
        }
        return 0;
}

void test_clock_freeze(struct test_clock *clock, struct now real) {
        clock->frozen = test_clock_read(clock, real);
        clock->is_frozen = true;
}

void test_clock_resume(struct test_clock *clock, struct now real) {
        if (!clock->is_frozen)
                return;

        clock->wall_offset_ms = clock->frozen.wall_ms - real.wall_ms;
        clock->mono_offset_ns = clock->frozen.mono_ns - real.mono_ns;
        clock->is_frozen = false;
}

void test_clock_reset(struct test_clock *clock) {
        clock->is_frozen = false;
        clock->wall_offset_ms = 0;
        clock->mono_offset_ns = 0;
}
