/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines across a restart, whatever the system clock has done: nothing is due before the time that it was given
 * has passed, and nothing stays for longer than that and the time that nobody could measure.
 */

#include <stdio.h>
#include <stdlib.h>

#include "storage/timescale.h"
#include "unit/storage/disk.h"
#include "unit/support/table.h"

#define MS   INT64_C(1000000)
#define HOUR INT64_C(3600000)

Test(timescale, starts_at_the_wall_clock) {
        struct now now = { .wall_ms = 1000000, .mono_ns = 5000 * MS };
        struct timescale timescale = timescale_resume(0, 0, now);

        cr_expect_eq(timescale_read(timescale, now), 1000000);
        cr_expect_eq(timescale_shift(timescale, now), 0);
}

Test(timescale, follows_the_monotonic_clock_and_not_the_wall_clock) {
        struct timescale timescale =
                timescale_resume(0, 0, (struct now){ .wall_ms = 1000000, .mono_ns = 0 });
        struct now later = { .wall_ms = 1000000 + 3 * HOUR, .mono_ns = 7 * MS };

        cr_expect_eq(timescale_read(timescale, later), 1000007);
        cr_expect_eq(timescale_shift(timescale, later), 3 * HOUR - 7);
        later.wall_ms = 0;
        cr_expect_eq(timescale_read(timescale, later), 1000007);
        cr_expect_eq(timescale_shift(timescale, later), -1000007);
}

Test(timescale, advances_with_the_wall_clock_between_runs) {
        struct now now = { .wall_ms = 1000000 + HOUR, .mono_ns = 3 * MS };

        cr_expect_eq(timescale_read(timescale_resume(1000000, 0, now), now), 1000000 + HOUR);
        cr_expect_eq(timescale_read(timescale_resume(1000000, 500, now), now), 1000000 + HOUR - 500);
        cr_expect_eq(timescale_read(timescale_resume(1000000, -500, now), now), 1000000 + HOUR + 500);
}

Test(timescale, does_not_go_back_with_the_wall_clock) {
        struct now now = { .wall_ms = 0, .mono_ns = 3 * MS };

        cr_expect_eq(timescale_read(timescale_resume(1000000, 0, now), now), 1000000);
        cr_expect_eq(timescale_read(timescale_resume(1000000, -HOUR, now), now), HOUR);
}

Test(timescale, rounds_deadlines_up) {
        struct timescale timescale = timescale_resume(0, 0, (struct now){ .wall_ms = 1000, .mono_ns = 0 });

        cr_expect_eq(timescale_from_deadline(timescale, 0), 1000);
        cr_expect_eq(timescale_from_deadline(timescale, 1), 1001);
        cr_expect_eq(timescale_from_deadline(timescale, MS), 1001);
        cr_expect_eq(timescale_from_deadline(timescale, MS + 1), 1002);
        cr_expect_eq(timescale_to_deadline(timescale, 1001), MS);
        cr_expect_eq(timescale_to_deadline(timescale, 999), -MS);
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
                                cr_expect_leq(timescale_to_deadline(timescale, extremes[k]), STORE_NEVER);
                                if (extremes[k] >= 0 && extremes[k] != STORE_NEVER)
                                        timescale_from_deadline(timescale, extremes[k]);
                                timescale_was_stepped(extremes[i], extremes[j]);
                        }
        cr_expect_eq(timescale_to_deadline(timescale_resume(0, 0, (struct now){ 0 }), INT64_MAX),
                     STORE_NEVER);
}

Test(timescale, half_a_second_is_a_step_and_less_is_not) {
        cr_expect_not(timescale_was_stepped(1000, 500));
        cr_expect_not(timescale_was_stepped(500, 1000));
        cr_expect(timescale_was_stepped(1001, 500));
        cr_expect(timescale_was_stepped(500, 1001));
        cr_expect(timescale_was_stepped(INT64_MIN, INT64_MAX));
}

/* A key that has ten seconds to live is committed, then something happens, then the store is started. */
static const struct {
        const char *name;
        int64_t runs_ms;      /* after the commit, on the monotonic clock */
        int64_t step_ms;      /* of the wall clock, while it runs */
        int64_t down_ms;      /* as it really was */
        int64_t lag_ms;       /* what the wall clock lacks, started again */
        int64_t remaining_ms; /* what the key then has */
        bool is_idle;         /* nothing was committed after the step */
        bool needs_commit;    /* and something should have been */
} stories[] = {
        { "nothing", .remaining_ms = 10000 },
        { "three seconds pass", .runs_ms = 3000, .remaining_ms = 7000 },
        { "three seconds down", .down_ms = 3000, .remaining_ms = 7000 },
        { "an hour down", .down_ms = HOUR, .remaining_ms = 10000 - HOUR },
        { "an hour forward while it runs", .runs_ms = 1000, .step_ms = HOUR, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "an hour back while it runs", .runs_ms = 1000, .step_ms = -HOUR, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "a wake-up in 1970 that ends", .runs_ms = 1000, .step_ms = 50 * 365 * 24 * HOUR, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "a step that is too small for anything", .runs_ms = 1000, .step_ms = 400, .down_ms = 2000,
          .remaining_ms = 7000 },
        { "an hour back over the restart: no time seems to have passed", .runs_ms = 2000, .down_ms = 3000,
          .lag_ms = HOUR, .remaining_ms = 8000 },
        { "1970 over the restart", .runs_ms = 2000, .down_ms = 3000, .lag_ms = DISK_WALL_MS,
          .remaining_ms = 8000 },
        { "an hour forward, and nothing committed since", .runs_ms = 1000, .step_ms = HOUR, .down_ms = 2000,
          .remaining_ms = 7000 - HOUR, .is_idle = true, .needs_commit = true },
        { "half a second forward, and nothing committed since", .runs_ms = 1000, .step_ms = 500,
          .down_ms = 2000, .remaining_ms = 6500, .is_idle = true },
        { "a second forward, and nothing committed since", .runs_ms = 1000, .step_ms = 1000, .down_ms = 2000,
          .remaining_ms = 6000, .is_idle = true, .needs_commit = true },
};

Test(storage_clock, preserves_remaining_time_of_a_deadline) {
        for (size_t i = 0; i < N_ROWS(stories); i++) {
                struct disk disk;
                char text[128];

                disk_init(&disk);
                cr_assert_eq(disk_open(&disk), 0);
                disk_set_as(&disk, (struct setting){ .key = S("k"),
                                                     .value = S("v"),
                                                     .deadline_ns = disk.now.mono_ns + 10000 * MS });
                COMMIT(&disk);

                disk.now.mono_ns += stories[i].runs_ms * MS;
                disk.now.wall_ms += stories[i].runs_ms + stories[i].step_ms;
                cr_expect_eq(storage_needs_commit(disk.storage, disk.now),
                             stories[i].is_idle ? stories[i].needs_commit : llabs(stories[i].step_ms) > 500,
                             ROW(stories, i));
                if (!stories[i].is_idle) {
                        COMMIT(&disk);
                        cr_expect_not(storage_needs_commit(disk.storage, disk.now), ROW(stories, i));
                }
                disk_close(&disk);

                /* another boot: the monotonic clock begins anew */
                disk.now.mono_ns = 77 * MS;
                disk.now.wall_ms += stories[i].down_ms - stories[i].lag_ms;
                if (disk.now.wall_ms < 0)
                        disk.now.wall_ms = 0;
                cr_assert_eq(disk_open(&disk), 0, ROW(stories, i));
                snprintf(text, sizeof(text), "deadline %lld ",
                         (long long)(77 * MS + stories[i].remaining_ms * MS));
                cr_expect_not_null(strstr(disk.loaded.lines[0].text, text),
                                   "row %zu: %s: \"%s\" is not in %s", i, stories[i].name, text,
                                   disk.loaded.lines[0].text);
                disk_deinit(&disk);
        }
}

/* Twice in 1970, with the date learnt in between or not. */
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

        /* four minutes have passed that somebody counted */
        disk.now = (struct now){ .wall_ms = 5000, .mono_ns = 0 };
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect_not_null(strstr(disk.loaded.lines[0].text, "deadline 3360000000000 "), "%s",
                           disk.loaded.lines[0].text);
        disk_deinit(&disk);
}

/* A deadline beyond every clock is one nevertheless: what it becomes is never early. */
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
