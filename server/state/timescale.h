/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The clock for stored deadlines, in milliseconds. This clock advances with the monotonic clock
 * while the process runs, and with the wall clock between runs. It never goes back. A step of the
 * wall clock does not change it. Example: a gateway boots with the date 1970, sets a deadline one
 * hour ahead, and then receives the date. The deadline is still one hour ahead.
 *
 * The reading is the present time of this clock. The shift is the wall clock minus the reading: the
 * sum of all steps of the wall clock so far. Both are stored with the deadlines, for
 * timescale_resume().
 */
struct timescale {
        int64_t start_ms; /* the reading when the store was started */
        int64_t start_ns; /* the monotonic clock at that time */
};

/*
 * Continue from the reading and the shift of the last commit; both are 0 at the first start. If the
 * wall clock was set back while the store was stopped, the clock continues from reading_ms, because
 * it never goes back.
 *
 * The wall clock is known only within 1 ms, so a restart rounds deadlines. Rounding never moves
 * them to an earlier time, because a lock must not expire early. It moves them by less than 4 ms to
 * a later time.
 */
struct timescale timescale_resume(int64_t reading_ms, int64_t shift_ms, struct now now);

int64_t timescale_read(struct timescale timescale, struct now now);

/* Return the shift. Saturates at the limits of int64_t. */
int64_t timescale_shift(struct timescale timescale, struct now now);

/*
 * Return true if the two shifts differ by more than clock drift can cause: the wall clock was
 * stepped in the meantime.
 */
bool timescale_was_stepped(int64_t shift_ms, int64_t other_shift_ms);

/*
 * Convert a monotonic deadline, which must not be negative or DEADLINE_NEVER. Rounds up, so that no
 * key expires early.
 */
int64_t timescale_from_deadline(struct timescale timescale, int64_t deadline_ns);

/*
 * Convert a reading to a monotonic deadline in nanoseconds. The result is negative if the deadline
 * passed before the machine was started. It is DEADLINE_NEVER if the deadline does not fit in
 * int64_t (292 years). A deadline that did fit when it was stored may not fit after a restart,
 * because the monotonic clock has another value.
 */
int64_t timescale_to_deadline(struct timescale timescale, int64_t reading_ms);
