/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines across restarts and steps of the system clock. No key expires early. A key stays longer
 * than its time to live at most by the time that no clock measured.
 */

#include <stdio.h>
#include <stdlib.h>

#include "storage/timescale.h"
#include "unit/storage/disk.h"
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

/*
 * A key with 10 s to live is committed. Then the clock is stepped or the store is stopped, and the
 * store is started.
 */
static const struct {
        const char *name;
        int64_t runs_ms;      /* after the commit, on the monotonic clock */
        int64_t step_ms;      /* of the wall clock, while it runs */
        int64_t down_ms;      /* actual time between stop and start */
        int64_t lag_ms;       /* how far the wall clock is behind at the start */
        int64_t remaining_ms; /* remaining time to live at the start */
        bool is_idle;         /* no commit after the step */
        bool needs_commit;    /* storage_needs_commit() returns true after the step */
} cases[] = {
        { "nothing", .remaining_ms = 10000 },
        { "three seconds pass", .runs_ms = 3000, .remaining_ms = 7000 },
        { "three seconds down", .down_ms = 3000, .remaining_ms = 7000 },
        { "an hour down", .down_ms = HOUR, .remaining_ms = 10000 - HOUR },
        { "an hour forward while it runs", .runs_ms = 1000, .step_ms = HOUR, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "an hour back while it runs", .runs_ms = 1000, .step_ms = -HOUR, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "the date is set after a boot in 1970", .runs_ms = 1000, .step_ms = 50 * 365 * 24 * HOUR,
          .down_ms = 2000, .remaining_ms = 7000 },
        { "a step below the tolerance", .runs_ms = 1000, .step_ms = 400, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "an hour back while the store is stopped: no clock measures that time", .runs_ms = 2000,
          .down_ms = 3000, .lag_ms = HOUR, .remaining_ms = 8000 },
        { "1970 after the restart", .runs_ms = 2000, .down_ms = 3000, .lag_ms = DISK_WALL_MS,
          .remaining_ms = 8000 },
        { "an hour forward without a commit", .runs_ms = 1000, .step_ms = HOUR, .down_ms = 2000,
          .remaining_ms = 7000 - HOUR, .is_idle = true, .needs_commit = true },
        { "half a second forward without a commit", .runs_ms = 1000, .step_ms = 500, .down_ms = 2000,
          .remaining_ms = 6500, .is_idle = true },
        { "a second forward without a commit", .runs_ms = 1000, .step_ms = 1000, .down_ms = 2000,
          .remaining_ms = 6000, .is_idle = true, .needs_commit = true },
};

Test(storage_clock, preserves_remaining_time_of_a_deadline) {
        for (size_t i = 0; i < N_ROWS(cases); i++) {
                struct disk disk;
                char text[128];

                disk_init(&disk);
                cr_assert_eq(disk_open(&disk), 0);
                disk_set_as(&disk, (struct setting){ .key = S("k"),
                                                     .value = S("v"),
                                                     .deadline_ns = disk.now.mono_ns + 10000 * MS });
                COMMIT(&disk);

                disk.now.mono_ns += cases[i].runs_ms * MS;
                disk.now.wall_ms += cases[i].runs_ms + cases[i].step_ms;
                cr_expect_eq(storage_needs_commit(disk.storage, disk.now),
                             cases[i].is_idle ? cases[i].needs_commit : llabs(cases[i].step_ms) > 500,
                             ROW(cases, i));
                if (!cases[i].is_idle) {
                        COMMIT(&disk);
                        cr_expect_not(storage_needs_commit(disk.storage, disk.now), ROW(cases, i));
                }
                disk_close(&disk);

                /* after a boot the monotonic clock starts from a low value */
                disk.now.mono_ns = 77 * MS;
                disk.now.wall_ms += cases[i].down_ms - cases[i].lag_ms + 1; /* rounded up */
                if (disk.now.wall_ms < 0)
                        disk.now.wall_ms = 0;
                cr_assert_eq(disk_open(&disk), 0, ROW(cases, i));
                snprintf(text, sizeof(text), "deadline %lld ",
                         (long long)(77 * MS + cases[i].remaining_ms * MS));
                cr_expect_not_null(strstr(disk.loaded.lines[0].text, text),
                                   "row %zu: %s: \"%s\" is not in %s", i, cases[i].name, text,
                                   disk.loaded.lines[0].text);
                disk_deinit(&disk);
        }
}

/* Several boots in 1970; the clock receives the date during some of them. */
Test(storage_clock, deadlines_survive_boots_with_a_wrong_date) {
        struct disk disk;

        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_set_as(&disk, (struct setting){ .key = S("k"),
                                             .value = S("v"),
                                             .deadline_ns = disk.now.mono_ns + HOUR * MS });
        COMMIT(&disk);

        for (int i = 0; i < 4; i++) {
                disk_close(&disk);
                disk.now = (struct now){ .wall_ms = 5000, .mono_ns = 5000 * MS };
                cr_assert_eq(disk_open(&disk), 0);
                cr_expect(storage_needs_commit(disk.storage, disk.now) || i > 1, "boot %d", i);
                disk.now = (struct now){ .wall_ms = 65000, .mono_ns = 65000 * MS };
                if (i % 2 == 0)
                        disk.now.wall_ms = DISK_WALL_MS + i * HOUR;
                COMMIT(&disk);
        }
        disk_close(&disk);

        /* four minutes were measured */
        disk.now = (struct now){ .wall_ms = 5000, .mono_ns = 0 };
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect_not_null(strstr(disk.loaded.lines[0].text, "deadline 3360000000000 "), "%s",
                           disk.loaded.lines[0].text);
        disk_deinit(&disk);
}

/* A deadline beyond the range of the clocks is clamped, and never expires early. */
Test(storage_clock, stores_the_largest_deadline) {
        struct disk disk;

        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_set_as(&disk, (struct setting){ .key = S("k"), .value = S("v"), .deadline_ns = INT64_MAX - 1 });
        COMMIT(&disk);
        disk_close(&disk);
        disk.now.mono_ns += HOUR * MS;
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect_not_null(strstr(disk.loaded.lines[0].text, "deadline 0 "), "%s",
                           disk.loaded.lines[0].text);
        disk_deinit(&disk);
}
