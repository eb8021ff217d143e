/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/clock.h"

/*
 * The published clients store a counter as a signed 32-bit integer. Where a version would reach this counter, its wall clock
 * part is incremented instead.
 */
#define COUNTER_END INT32_MAX

/*
 * The same limit for a version that follows one of the store's own. The .NET client adds 1 to a counter that it receives, and
 * fails for ever when it reaches COUNTER_END. So only the reply to a request with a large counter has a larger one.
 */
#define OWN_COUNTER_END (COUNTER_END - (1 << 20))

/* Raise *version above this wall clock and counter, unless it is above them already. */
static void raise_above(struct version *version, int64_t wall_ms, uint64_t counter, uint64_t end) {
        if (version->wall_ms > wall_ms || (version->wall_ms == wall_ms && version->counter > counter))
                return;

        if (counter >= end - 1)
                *version = (struct version){ wall_ms + 1, 0 };
        else
                *version = (struct version){ wall_ms, (uint32_t)counter + 1 };
}

struct version clock_tick(struct clock *clock, int64_t wall_ms) {
        struct version next = { wall_ms, 0 };

        raise_above(&next, clock->last.wall_ms, clock->last.counter, OWN_COUNTER_END);
        clock->last = next;
        return next;
}

struct version clock_receive(struct clock *clock, int64_t wall_ms, struct hlc remote) {
        struct version next = { wall_ms, 0 };

        raise_above(&next, remote.wall_ms, remote.counter, COUNTER_END);
        raise_above(&next, clock->last.wall_ms, clock->last.counter, OWN_COUNTER_END);
        clock->last = next;
        return next;
}

bool clock_is_too_far_ahead(struct hlc remote, int64_t wall_ms) {
        return remote.wall_ms > wall_ms && remote.wall_ms - wall_ms > CLOCK_SKEW_MAX_MS;
}

bool clock_is_fence_too_far_ahead(const struct clock *clock, struct slice node_id, struct hlc remote,
                                  int64_t wall_ms) {
        struct hlc ours = { clock->last.wall_ms, clock->last.counter, node_id };

        return clock_is_too_far_ahead(remote, wall_ms) && hlc_compare(remote, ours) > 0;
}
