/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The clock for stored deadlines, in milliseconds. It advances with the monotonic clock while the process
 * runs, and with the wall clock between runs. It never goes back, and a step of the system clock does not
 * move it. Its reading is the wall clock minus the sum of all steps so far. That sum is the shift.
 *
 * A deadline one hour ahead thus stays one hour ahead when a gateway that booted in 1970 receives the date.
 * The shift is stored with the deadlines, so that they are also right after a restart.
 */
struct timescale {
        int64_t base_ms; /* difference to the monotonic clock */
};

/*
 * Continue from the reading and the shift of the last commit; both are 0 at the first start. If the wall
 * clock is behind that reading, no time has passed since.
 */
struct timescale timescale_resume(int64_t reading_ms, int64_t shift_ms, struct now now);

int64_t timescale_read(struct timescale timescale, struct now now);

/* The lead of the wall clock over this clock. Clamped to the range of plausible values. */
int64_t timescale_shift(struct timescale timescale, struct now now);

/* Whether two shifts differ by more than the drift of a clock that was not stepped. */
bool timescale_was_stepped(int64_t shift_ms, int64_t other_shift_ms);

/*
 * Convert a monotonic deadline; rounds up, so that no key expires early. deadline_ns must not be
 * STORE_NEVER.
 */
int64_t timescale_from_deadline(struct timescale timescale, int64_t deadline_ns);

/*
 * Convert to monotonic nanoseconds. Negative if the deadline passed before the machine was started. The
 * result is clamped, and never STORE_NEVER.
 */
int64_t timescale_to_deadline(struct timescale timescale, int64_t reading_ms);
