/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "state/timescale.h"
#include "unit/support/table.h"

#define MS   INT64_C(1000000)
#define HOUR INT64_C(3600000)

Test(timescale, starts_at_the_earliest_time_that_the_wall_clock_may_have) {
        struct now now = { .wall_ms = 1000000, .mono_ns = 5000 * MS };
        struct timescale timescale = timescale_resume(0, 0, now);

        cr_expect_eq(timescale_read(timescale, now), 1000000 - 1);
        cr_expect_eq(timescale_shift(timescale, now), 1);
}

Test(timescale, follows_the_monotonic_clock_and_not_the_wall_clock) {
        struct timescale timescale =
                timescale_resume(0, 0, (struct now){ .wall_ms = 1000001, .mono_ns = 0 });
        struct now later = { .wall_ms = 1000000 + 3 * HOUR, .mono_ns = 7 * MS };

        cr_expect_eq(timescale_read(timescale, later), 1000007);
        cr_expect_eq(timescale_shift(timescale, later), 3 * HOUR - 7);
        later.wall_ms = 0;
        cr_expect_eq(timescale_read(timescale, later), 1000007);
        cr_expect_eq(timescale_shift(timescale, later), -1000007);
}

Test(timescale, advances_with_the_wall_clock_between_runs) {
        struct now now = { .wall_ms = 1000000 + HOUR + 1, .mono_ns = 3 * MS };

        cr_expect_eq(timescale_read(timescale_resume(1000000, 0, now), now), 1000000 + HOUR);
        cr_expect_eq(timescale_read(timescale_resume(1000000, 500, now), now), 1000000 + HOUR - 500);
        cr_expect_eq(timescale_read(timescale_resume(1000000, -500, now), now), 1000000 + HOUR + 500);
}

Test(timescale, does_not_go_back_with_the_wall_clock) {
        struct now now = { .wall_ms = 1, .mono_ns = 3 * MS };

        cr_expect_eq(timescale_read(timescale_resume(1000000, 0, now), now), 1000000);
        cr_expect_eq(timescale_read(timescale_resume(1000000, -HOUR, now), now), HOUR);
}

Test(timescale, rounds_deadlines_up) {
        struct timescale timescale = timescale_resume(0, 0, (struct now){ .wall_ms = 1001, .mono_ns = 0 });

        cr_expect_eq(timescale_from_deadline(timescale, 0), 1000);
        cr_expect_eq(timescale_from_deadline(timescale, 1), 1001);
        cr_expect_eq(timescale_from_deadline(timescale, MS), 1001);
        cr_expect_eq(timescale_from_deadline(timescale, MS + 1), 1002);
        cr_expect_eq(timescale_to_deadline(timescale, 1001), MS);
        cr_expect_eq(timescale_to_deadline(timescale, 999), -MS);
}

/*
 * The wall clock as engine.h defines it: rounded up. The exact time is in nanoseconds, from the
 * same origin as the monotonic clock.
 */
static struct now now_at(int64_t time_ns, int64_t boot_ns) {
        return (struct now){ .wall_ms = (time_ns + MS - 1) / MS, .mono_ns = time_ns - boot_ns };
}

/* Fractions of a millisecond, at which the clocks are read. */
static const int64_t fractions_ns[] = { 0, 1, MS / 2, MS - 1 };

Test(timescale, restart_never_moves_a_deadline_to_an_earlier_time) {
        const size_t n = N_ROWS(fractions_ns);

        for (size_t i = 0; i < n * n * n * n; i++) {
                int64_t boot_ns = fractions_ns[i % n];
                int64_t commit_ns = 5000 * MS + fractions_ns[i / n % n];
                int64_t restart_ns = 7000 * MS + fractions_ns[i / n / n % n];
                int64_t second_boot_ns = 6000 * MS + fractions_ns[i / n / n / n];
                int64_t deadline_ns = 9000 * MS + fractions_ns[i % n], moved_ns;
                struct timescale timescale = timescale_resume(0, 0, now_at(1000 * MS, boot_ns));
                struct now commit = now_at(commit_ns, boot_ns);
                int64_t stored_ms = timescale_from_deadline(timescale, deadline_ns - boot_ns);

                timescale = timescale_resume(timescale_read(timescale, commit),
                                             timescale_shift(timescale, commit),
                                             now_at(restart_ns, second_boot_ns));
                moved_ns = timescale_to_deadline(timescale, stored_ms) + second_boot_ns - deadline_ns;
                cr_expect_geq(moved_ns, 0, "%zu: %lld ns early", i, (long long)-moved_ns);
                cr_expect_lt(moved_ns, 4 * MS, "%zu: %lld ns late", i, (long long)moved_ns);
        }
}

static const int64_t extremes[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };

Test(timescale, saturates_at_its_range) {
        for (size_t i = 0; i < N_ROWS(extremes); i++)
                for (size_t j = 0; j < N_ROWS(extremes); j++)
                        for (size_t k = 0; k < N_ROWS(extremes); k++) {
                                struct now now = { .wall_ms = labs(extremes[k] / 2), .mono_ns = 5 };
                                struct timescale timescale = timescale_resume(extremes[i], extremes[j], now);

                                cr_expect_geq(timescale_read(timescale, now), extremes[i]);
                                timescale_shift(timescale, now);
                                cr_expect_leq(timescale_to_deadline(timescale, extremes[k]), DEADLINE_NEVER);
                                if (extremes[k] >= 0 && extremes[k] != DEADLINE_NEVER)
                                        timescale_from_deadline(timescale, extremes[k]);
                                timescale_was_stepped(extremes[i], extremes[j]);
                        }
        cr_expect_eq(timescale_to_deadline(timescale_resume(0, 0, (struct now){ 0 }), INT64_MAX),
                     DEADLINE_NEVER);
}

/*
 * SET accepts such a deadline. The wall clock is set back between two runs, so the second run
 * continues from the last reading.
 */
Test(timescale, deadline_near_its_maximum_can_leave_the_range) {
        struct now first = { .wall_ms = HOUR, .mono_ns = 0 },
                   second = { .wall_ms = 0, .mono_ns = HOUR * MS };
        struct timescale timescale = timescale_resume(0, 0, first);
        int64_t stored_ms = timescale_from_deadline(timescale, DEADLINE_NEVER - 1);

        timescale = timescale_resume(timescale_read(timescale, first), timescale_shift(timescale, first),
                                     second);
        cr_expect_eq(timescale_to_deadline(timescale, stored_ms), DEADLINE_NEVER);
}

Test(timescale, more_than_half_a_second_is_a_step) {
        cr_expect_not(timescale_was_stepped(1000, 500));
        cr_expect_not(timescale_was_stepped(500, 1000));
        cr_expect(timescale_was_stepped(1001, 500));
        cr_expect(timescale_was_stepped(500, 1001));
        cr_expect(timescale_was_stepped(INT64_MIN, INT64_MAX));
}
