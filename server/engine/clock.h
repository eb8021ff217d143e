/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/version.h"
#include "protocol/hlc.h"

/*
 * The store's hybrid logical clock, which assigns versions: PROTOCOL.md "Hybrid logical clocks";
 * Kulkarni et al., "Logical Physical Clocks" (2014), figure 5. It never decreases, even if the
 * system clock is set back.
 */
struct clock {
        struct version last;
};

/* Maximum time by which a request's timestamp may be ahead of the store's wall clock. */
#define CLOCK_SKEW_MAX_MS 60000

/* Assign the version of an event without a timestamp. Greater than every version before. */
struct version clock_tick(struct clock *clock, int64_t wall_ms);

/*
 * Assign the version of a request with the timestamp `remote`. Greater than `remote` and than every
 * version before.
 */
struct version clock_receive(struct clock *clock, int64_t wall_ms, struct hlc remote);

/* Return whether the timestamp is more than CLOCK_SKEW_MAX_MS ahead of the wall clock. */
bool clock_is_too_far_ahead(struct hlc remote, int64_t wall_ms);

/*
 * As clock_is_too_far_ahead(), for a fencing token. A token that is not greater than the clock's
 * last version is never too far ahead, because this clock may have assigned it. node_id: the
 * store's.
 */
bool clock_is_fence_too_far_ahead(const struct clock *clock, struct slice node_id, struct hlc remote,
                                  int64_t wall_ms);
