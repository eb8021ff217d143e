/* SPDX-License-Identifier: Apache-2.0 */

#include "state/timescale.h"

#include "base/time_units.h"

#define STEP_TOLERANCE_MS 500

/* Add with saturation: stored values with a valid checksum may still be out of range. */
static int64_t saturating_sum(int64_t a, int64_t b) {
        int64_t sum;

        if (__builtin_add_overflow(a, b, &sum))
                return a < 0 ? INT64_MIN : INT64_MAX;
        return sum;
}

static int64_t saturating_difference(int64_t a, int64_t b) {
        int64_t difference;

        if (__builtin_sub_overflow(a, b, &difference))
                return a < 0 ? INT64_MIN : INT64_MAX;
        return difference;
}

struct timescale timescale_resume(int64_t reading_ms, int64_t shift_ms, struct now now) {
        /*
         * Round down, because keys would expire early if this clock were ahead. now.wall_ms is
         * rounded up by less than 1 ms, so subtract 1. The shift is rounded up already.
         */
        int64_t by_wall_ms = saturating_difference(saturating_difference(now.wall_ms, 1), shift_ms);

        return (struct timescale){
                .start_ms = by_wall_ms > reading_ms ? by_wall_ms : reading_ms,
                .start_ns = now.mono_ns,
        };
}

int64_t timescale_read(struct timescale timescale, struct now now) {
        return saturating_sum(timescale.start_ms, (now.mono_ns - timescale.start_ns) / NS_PER_MS);
}

int64_t timescale_shift(struct timescale timescale, struct now now) {
        return saturating_difference(now.wall_ms, timescale_read(timescale, now));
}

bool timescale_was_stepped(int64_t shift_ms, int64_t other_shift_ms) {
        int64_t step_ms = saturating_difference(shift_ms, other_shift_ms);

        return step_ms > STEP_TOLERANCE_MS || step_ms < -STEP_TOLERANCE_MS;
}

int64_t timescale_from_deadline(struct timescale timescale, int64_t deadline_ns) {
        int64_t remaining_ns = deadline_ns - timescale.start_ns;

        return saturating_sum(timescale.start_ms, remaining_ns / NS_PER_MS + (remaining_ns % NS_PER_MS > 0));
}

int64_t timescale_to_deadline(struct timescale timescale, int64_t reading_ms) {
        int64_t remaining_ms = saturating_difference(reading_ms, timescale.start_ms);
        int64_t remaining_ns;

        if (__builtin_mul_overflow(remaining_ms, NS_PER_MS, &remaining_ns))
                return remaining_ms < 0 ? INT64_MIN : DEADLINE_NEVER;
        return saturating_sum(timescale.start_ns, remaining_ns);
}
