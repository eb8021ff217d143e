/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/clock.h"

/*
 * The counters of all versions are below this number, because the published clients store a counter
 * as a signed 32-bit integer. A version that would reach it gets the next millisecond and the
 * counter 0 instead.
 */
#define COUNTER_END INT32_MAX

/*
 * A smaller maximum, for a version that follows the store's last version and not the timestamp of a
 * request. The .NET client adds 1 to each counter that it receives, and fails permanently when its
 * own counter reaches COUNTER_END. With this maximum, a request with a counter near COUNTER_END
 * affects the version in its own reply only, and no later version.
 */
#define OWN_COUNTER_END (COUNTER_END - (1 << 20))

/*
 * Raise *version above this wall clock and counter, unless it is above them already. The new
 * counter is below counter_end.
 */
static void raise_above(struct version *version, int64_t wall_ms, uint64_t counter, uint64_t counter_end) {
        if (version->wall_ms > wall_ms || (version->wall_ms == wall_ms && version->counter > counter))
                return;

        if (counter >= counter_end - 1)
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
