/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines across restarts and steps of the system clock. No key expires early. A key stays longer
 * than its time to live at most by the time that no clock measured.
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/time_units.h"
#include "state/state.h"
#include "support/follow.h"
#include "support/limits.h"
#include "unit/support/entries.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define MS      NS_PER_MS
#define HOUR    INT64_C(3600000) /* in milliseconds */
#define WALL_MS INT64_C(1696374425000)

/* A run of the store with one key, and what the last commit has stored. */
static struct state *state;
static struct now now;
static struct state_header stored_header;
static int64_t stored_expires_at_ms;

static void stop(void) {
        state = state_free(state);
}

/* Start with what is stored. */
static void start(void) {
        static const struct engine_config config = { .limits = TEST_LIMITS };
        const struct row entry = { .type = ROW_ENTRY,
                                   .entry = { .key = S("k"),
                                              .value = S("v"),
                                              .version = { 1000, 0 },
                                              .expires_at_ms = stored_expires_at_ms } };

        cr_assert_eq(state_new(&state, &config, &stored_header, now), 0);
        if (stored_header.n_commits > 0)
                cr_assert_eq(state_put_row(state, &entry, now), 0);
}

static void commit(struct effects *effects) {
        struct change_set change_set;

        cr_assert_eq(state_make_change_set(state, effects, now, &change_set), 0);
        stored_header = change_set.header;
        if (change_set.n_rows > 0 && change_set.rows[0].type == ROW_ENTRY)
                stored_expires_at_ms = change_set.rows[0].entry.expires_at_ms;
        state_commit(state, &change_set);
        effects_reset(effects);
}

static void commit_nothing(void) {
        struct effects effects = { 0 };

        commit(&effects);
        effects_deinit(&effects);
}

static void commit_key(int64_t deadline_ns) {
        const struct entry_fields fields = { S("k"), S("v"), { 1000, 0 }, deadline_ns, NULL };
        struct effects effects = { 0 };

        cr_assert_eq(engine_import_entry(state->engine, &fields, &effects), 0);
        commit(&effects);
        effects_deinit(&effects);
}

static int64_t deadline(void) {
        return keyspace_deadline(engine_keyspace(state->engine), find_entry(state->engine, S("k")));
}

/* The first start. */
static void setup(void) {
        now = (struct now){ .wall_ms = WALL_MS, .mono_ns = NS_PER_S };
        state_header_init(&stored_header);
        start();
}

TestSuite(state_clock, .init = setup, .fini = stop);

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
        bool needs_commit;    /* state_needs_commit() returns true after the step */
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
        { "1970 after the restart", .runs_ms = 2000, .down_ms = 3000, .lag_ms = WALL_MS,
          .remaining_ms = 8000 },
        { "an hour forward without a commit", .runs_ms = 1000, .step_ms = HOUR, .down_ms = 2000,
          .remaining_ms = 7000 - HOUR, .is_idle = true, .needs_commit = true },
        { "half a second forward without a commit", .runs_ms = 1000, .step_ms = 500, .down_ms = 2000,
          .remaining_ms = 6500, .is_idle = true },
        { "a second forward without a commit", .runs_ms = 1000, .step_ms = 1000, .down_ms = 2000,
          .remaining_ms = 6000, .is_idle = true, .needs_commit = true },
};

Test(state_clock, preserves_remaining_time_of_a_deadline) {
        for (size_t i = 0; i < N_ROWS(cases); i++) {
                stop();
                setup();
                commit_key(now.mono_ns + 10000 * MS);
                cr_expect_not(state_needs_commit(state, now), ROW(cases, i));

                now.mono_ns += cases[i].runs_ms * MS;
                now.wall_ms += cases[i].runs_ms + cases[i].step_ms;
                cr_expect_eq(state_needs_commit(state, now),
                             cases[i].is_idle ? cases[i].needs_commit : llabs(cases[i].step_ms) > 500,
                             ROW(cases, i));
                if (!cases[i].is_idle) {
                        commit_nothing();
                        cr_expect_not(state_needs_commit(state, now), ROW(cases, i));
                }
                stop();

                /* after a boot the monotonic clock starts from a low value */
                now.mono_ns = 77 * MS;
                now.wall_ms += cases[i].down_ms - cases[i].lag_ms + 1; /* rounded up */
                if (now.wall_ms < 0)
                        now.wall_ms = 0;
                start();
                cr_expect_eq(deadline(), 77 * MS + cases[i].remaining_ms * MS, "row %zu: %s: %lld", i,
                             cases[i].name, (long long)deadline());
        }
}

/* Several boots in 1970; the clock receives the date during some of them. */
Test(state_clock, deadlines_survive_boots_with_a_wrong_date) {
        commit_key(now.mono_ns + HOUR * MS);
        for (int i = 0; i < 4; i++) {
                stop();
                now = (struct now){ .wall_ms = 5000, .mono_ns = 5000 * MS };
                start();
                cr_expect(state_needs_commit(state, now) || i > 1, "boot %d", i);
                now = (struct now){ .wall_ms = 65000, .mono_ns = 65000 * MS };
                if (i % 2 == 0)
                        now.wall_ms = WALL_MS + i * HOUR;
                commit_nothing();
        }
        stop();

        /* four minutes were measured */
        now = (struct now){ .wall_ms = 5000, .mono_ns = 0 };
        start();
        cr_expect_eq(deadline(), 3360000 * MS, "%lld", (long long)deadline());
}

/* A deadline beyond the range of the clocks is clamped, and never expires early. */
Test(state_clock, stores_the_largest_deadline) {
        commit_key(INT64_MAX - 1);
        stop();
        now.mono_ns += HOUR * MS;
        start();
        cr_expect_eq(deadline(), DEADLINE_NEVER);
}

/* The step was committed by an earlier run; a copy in another process has it too. */
Test(state_clock, change_set_of_a_step_needs_no_further_commit) {
        struct state *copy;
        struct effects effects = { 0 };
        struct change_set change_set;
        const struct engine_config config = { .limits = TEST_LIMITS };

        commit_key(now.mono_ns + 10000 * MS);
        cr_assert_eq(state_new(&copy, &config, &stored_header, now), 0);
        now.wall_ms += HOUR;
        cr_expect(state_needs_commit(copy, now));
        cr_assert_eq(state_make_change_set(state, &effects, now, &change_set), 0);
        cr_assert_eq(follow_commit(copy, &change_set, now), 0);
        state_commit(state, &change_set);
        cr_expect_not(state_needs_commit(copy, now));
        cr_expect_not(state_needs_commit(state, now));
        state_free(copy);
}
