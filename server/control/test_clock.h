/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The clock of a test double. It shows the real time until a test changes it. Versions, deadlines,
 * remembered replies and checks of timestamps use this clock, so a test does not have to wait for them.
 *
 * The monotonic time goes back only in test_clock_reset(). Call that function only while no
 * deadline is pending. A zeroed struct shows the real time.
 */
struct test_clock {
        int64_t wall_offset_ms;
        int64_t mono_offset_ns;
        bool is_frozen;
        struct now frozen; /* the reading while frozen */
};

/* Return the reading of the clock at this real time. */
struct now test_clock_read(const struct test_clock *clock, struct now real);

/*
 * Return the real nanoseconds until a deadline of this clock; negative if the deadline has passed.
 * Returns INT64_MAX for a future deadline while the clock is frozen, and if deadline_ns is
 * INT64_MAX.
 */
int64_t test_clock_remaining_ns(const struct test_clock *clock, int64_t deadline_ns, struct now real);

/*
 * Move the clock forward, also while frozen. Returns 0, or -ERANGE if it would be ahead of the
 * system's monotonic clock by more than TEST_CLOCK_ADVANCE_MAX_MS.
 */
#define TEST_CLOCK_ADVANCE_MAX_MS (INT64_C(100) * 365 * 24 * 3600 * 1000)
int test_clock_advance(struct test_clock *clock, int64_t duration_ms);

/* Stop the clock. */
void test_clock_freeze(struct test_clock *clock, struct now real);

/* Continue from the frozen reading. Does nothing if the clock is not frozen. */
void test_clock_resume(struct test_clock *clock, struct now real);

/* Return to the real time. */
void test_clock_reset(struct test_clock *clock);
