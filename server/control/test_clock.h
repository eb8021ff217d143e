/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The time that a test double lives in: the real one until a test says otherwise. Versions, deadlines, what is remembered
 * and the checks of skew all see this clock, so that an hour passes in no time.
 *
 * Its monotonic part goes back in a reset alone, when nothing is left that hangs on it. All zeros is the real time.
 */
struct test_clock {
        int64_t wall_offset_ms;
        int64_t mono_offset_ns;
        bool is_frozen;
        struct now frozen; /* what it reads then */
        struct skew *skews;
        size_t n_skews, skews_capacity;
};

/* Forgets the skews. */
void test_clock_deinit(struct test_clock *clock);

/* What it reads when the real time is `real`. */
struct now test_clock_read(const struct test_clock *clock, struct now real);

/* Until a deadline of the clock's: real nanoseconds, below 0 where it has passed; INT64_MAX: never, as the clock stands. */
int64_t test_clock_remaining_ns(const struct test_clock *clock, int64_t deadline_ns, struct now real);

/* Moves it forward, frozen or not. Returns 0, or -ERANGE past TEST_CLOCK_ADVANCE_MAX_MS since the last reset. */
#define TEST_CLOCK_ADVANCE_MAX_MS (INT64_C(100) * 365 * 24 * 3600 * 1000)
int test_clock_advance(struct test_clock *clock, int64_t duration_ms);

/* Stops it, and has it go on from where it stands. */
void test_clock_freeze(struct test_clock *clock, struct now real);
void test_clock_resume(struct test_clock *clock, struct now real);

/* It is the real time again; nobody is ahead. */
void test_clock_reset(struct test_clock *clock);

/*
 * From now on this client's clock is so far ahead of what it says, below 0: behind; 0: as it says. Returns 0, -ENOMEM, or
 * -ENOSPC where TEST_CLOCK_SKEWS_MAX clients are.
 */
#define TEST_CLOCK_SKEWS_MAX 1000
int test_clock_skew(struct test_clock *clock, struct slice client, int64_t ahead_ms);

/* What a time that the client says becomes; never below 0. */
int64_t test_clock_skewed_ms(const struct test_clock *clock, struct slice client, int64_t wall_ms);
