/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "control/test_clock.h"

#define MS INT64_C(1000000)

static const struct now start = { .wall_ms = 1000000, .mono_ns = 500 * MS };

static struct now later(int64_t ms) {
        return (struct now){ start.wall_ms + ms, start.mono_ns + ms * MS };
}

static void expect_reading(const struct test_clock *clock, struct now real, struct now expected) {
        struct now reading = test_clock_read(clock, real);

        cr_expect_eq(reading.wall_ms, expected.wall_ms);
        cr_expect_eq(reading.mono_ns, expected.mono_ns);
}

Test(test_clock, is_the_real_time_by_default) {
        struct test_clock clock = { 0 };

        expect_reading(&clock, start, start);
        expect_reading(&clock, later(7), later(7));
}

Test(test_clock, advances_wall_and_monotonic_time) {
        struct test_clock clock = { 0 };

        cr_assert_eq(test_clock_advance(&clock, 3600), 0);
        cr_assert_eq(test_clock_advance(&clock, 400), 0);
        expect_reading(&clock, later(7), later(4007));
}

Test(test_clock, freezes_and_resumes) {
        struct test_clock clock = { 0 };

        test_clock_freeze(&clock, later(5));
        expect_reading(&clock, later(100), later(5));
        cr_assert_eq(test_clock_advance(&clock, 1000), 0);
        expect_reading(&clock, later(200), later(1005));

        test_clock_freeze(&clock, later(300)); /* again */
        expect_reading(&clock, later(300), later(1005));

        test_clock_resume(&clock, later(400));
        expect_reading(&clock, later(410), later(1015));
        test_clock_resume(&clock, later(500));
        expect_reading(&clock, later(500), later(1105));
}

Test(test_clock, computes_real_time_until_a_deadline) {
        struct test_clock clock = { 0 };
        int64_t deadline_ns = later(1000).mono_ns;

        cr_expect_eq(test_clock_remaining_ns(&clock, deadline_ns, start), 1000 * MS);
        cr_expect_eq(test_clock_remaining_ns(&clock, INT64_MAX, start), INT64_MAX);
        cr_assert_eq(test_clock_advance(&clock, 900), 0);
        cr_expect_eq(test_clock_remaining_ns(&clock, deadline_ns, start), 100 * MS);

        test_clock_freeze(&clock, start);
        cr_expect_eq(test_clock_remaining_ns(&clock, deadline_ns, later(5000)), INT64_MAX);
        cr_assert_eq(test_clock_advance(&clock, 100), 0);
        cr_expect_eq(test_clock_remaining_ns(&clock, deadline_ns, later(5000)), 0);
}

Test(test_clock, reset_restores_real_time_and_the_advance_limit) {
        struct test_clock clock = { 0 };

        cr_assert_eq(test_clock_advance(&clock, TEST_CLOCK_ADVANCE_MAX_MS), 0);
        test_clock_freeze(&clock, later(1));

        test_clock_reset(&clock);

        expect_reading(&clock, later(3), later(3));
        for (int i = 0; i < 3; i++) { /* int64_t nanoseconds hold about three centuries */
                cr_expect_eq(test_clock_advance(&clock, TEST_CLOCK_ADVANCE_MAX_MS), 0);
                test_clock_reset(&clock);
        }
}

Test(test_clock, is_never_before_the_epoch) {
        struct test_clock clock = { 0 };

        test_clock_freeze(&clock, start);
        test_clock_resume(&clock, later(500));
        cr_expect_eq(test_clock_read(&clock, (struct now){ 100, 600 * MS }).wall_ms, 0);
}

Test(test_clock, advance_is_limited_to_a_century) {
        struct test_clock clock = { 0 };

        cr_expect_eq(test_clock_advance(&clock, TEST_CLOCK_ADVANCE_MAX_MS), 0);
        cr_expect_eq(test_clock_advance(&clock, 1), -ERANGE);
        cr_expect_eq(test_clock_advance(&clock, INT64_MAX), -ERANGE);
        expect_reading(&clock, start, later(TEST_CLOCK_ADVANCE_MAX_MS));
}
