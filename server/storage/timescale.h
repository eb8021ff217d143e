/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The clock that deadlines are kept on. It goes on with the monotonic clock while we run and with the wall clock
 * while we do not; it never goes back, and no step of the system clock moves it. It reads like the wall clock, in
 * ms since the epoch, but for the steps that there have been: these are its shift.
 *
 * So what was kept an hour before its deadline is an hour before it now, if a gateway that woke up in 1970 has
 * learnt the date meanwhile; and a deadline is due on time after a restart if the shift was kept beside it.
 */
struct timescale {
        int64_t base_ms; /* what the monotonic clock lacks */
};

/*
 * Goes on where reading_ms and shift_ms, from the commit that was last, say that it was; at a first start both are 0.
 * Where the wall clock is behind that, no time has passed since.
 */
struct timescale timescale_resume(int64_t reading_ms, int64_t shift_ms, struct now now);

int64_t timescale_read(struct timescale timescale, struct now now);

/* The wall clock's lead. Larger than any real one, or smaller, it stops at the range's end. */
int64_t timescale_shift(struct timescale timescale, struct now now);

/* Whether one shift differs from another by more than any clock does that was not stepped. */
bool timescale_was_stepped(int64_t shift_ms, int64_t other_shift_ms);

/* Rounded up, so that nothing is due early. deadline_ns must not be STORE_NEVER. */
int64_t timescale_from_deadline(struct timescale timescale, int64_t deadline_ns);

/* In monotonic nanoseconds; negative where it passed before the machine was started. Never out of range: STORE_NEVER. */
int64_t timescale_to_deadline(struct timescale timescale, int64_t reading_ms);
