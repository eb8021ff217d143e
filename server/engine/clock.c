/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/clock.h"

/* Published clients store the counter as a signed 32-bit integer. At this limit, the wall clock part is incremented. */
#define COUNTER_END INT32_MAX

static int64_t max(int64_t a, int64_t b) {
        return a > b ? a : b;
}

/* counter: the greatest counter in use at wall_ms, if has_counter. */
static struct version advance(struct clock *clock, int64_t wall_ms, bool has_counter, uint64_t counter) {
        struct version next = { wall_ms, 0 };

        if (has_counter && counter >= COUNTER_END - 1)
                next.wall_ms++;
        else if (has_counter)
                next.counter = (uint32_t)counter + 1;

        clock->last = next;
        return next;
}

struct version clock_tick(struct clock *clock, int64_t wall_ms) {
        int64_t next_ms = max(clock->last.wall_ms, wall_ms);

        return advance(clock, next_ms, next_ms == clock->last.wall_ms, clock->last.counter);
}

struct version clock_receive(struct clock *clock, int64_t wall_ms, struct hlc remote) {
        int64_t next_ms = max(max(clock->last.wall_ms, remote.wall_ms), wall_ms);
        bool is_ours = next_ms == clock->last.wall_ms;
        bool is_theirs = next_ms == remote.wall_ms;
        uint64_t counter = is_ours ? clock->last.counter : 0;

        if (is_theirs && remote.counter > counter)
                counter = remote.counter;
        return advance(clock, next_ms, is_ours || is_theirs, counter);
}

bool clock_is_too_far_ahead(struct hlc remote, int64_t wall_ms) {
        return remote.wall_ms > wall_ms && remote.wall_ms - wall_ms > CLOCK_SKEW_MAX_MS;
}

bool clock_is_too_far_beyond(const struct clock *clock, struct slice node_id, struct hlc remote,
                             int64_t wall_ms) {
        struct hlc ours = { clock->last.wall_ms, clock->last.counter, node_id };

        return clock_is_too_far_ahead(remote, wall_ms) && hlc_compare(remote, ours) > 0;
}
