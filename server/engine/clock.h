/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/hlc.h"

/*
 * The store's node id: the maximum length in bytes, and the node id if neither the operator nor the
 * storage has one.
 */
#define NODE_ID_MAX     256
#define NODE_ID_DEFAULT "StateStore"

/* A version that the store assigned; its node id is the store's. PROTOCOL.md "Hybrid logical clocks". */
struct version {
        int64_t wall_ms;
        uint32_t counter; /* below 2^31-1 */
};

/* Return < 0, 0 or > 0, as memcmp(). */
static inline int version_compare(struct version a, struct version b) {
        if (a.wall_ms != b.wall_ms)
                return a.wall_ms < b.wall_ms ? -1 : 1;
        return (a.counter > b.counter) - (a.counter < b.counter);
}

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
