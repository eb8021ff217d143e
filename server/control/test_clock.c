/* SPDX-License-Identifier: Apache-2.0 */

#include "control/test_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/time_units.h"

struct skew {
        struct buf client;
        int64_t ahead_ms;
};

static void clear_skews(struct test_clock *clock) {
        for (size_t i = 0; i < clock->n_skews; i++)
                buf_deinit(&clock->skews[i].client);
        clock->n_skews = 0;
}

void test_clock_deinit(struct test_clock *clock) {
        clear_skews(clock);
        free(clock->skews);
        clock->skews = NULL;
        clock->skews_capacity = 0;
}

struct now test_clock_read(const struct test_clock *clock, struct now real) {
        if (clock->is_frozen)
                return clock->frozen;

        /*
         * After freeze and resume the offset can be negative. If the system clock is then set back
         * to about 1970, return 0.
         */
        real.wall_ms = real.wall_ms > -clock->wall_offset_ms ? real.wall_ms + clock->wall_offset_ms : 0;
        real.mono_ns += clock->mono_offset_ns;
        return real;
}

int64_t test_clock_remaining_ns(const struct test_clock *clock, int64_t deadline_ns, struct now real) {
        int64_t remaining_ns;

        if (deadline_ns == INT64_MAX)
                return INT64_MAX;

        remaining_ns = deadline_ns - test_clock_read(clock, real).mono_ns;
        return clock->is_frozen && remaining_ns > 0 ? INT64_MAX : remaining_ns;
}

int test_clock_advance(struct test_clock *clock, int64_t duration_ms) {
        /* mono_offset_ns can be negative after the clock was frozen and resumed. */
        int64_t advanced_ns = clock->mono_offset_ns > 0 ? clock->mono_offset_ns : 0;

        if (duration_ms > TEST_CLOCK_ADVANCE_MAX_MS - advanced_ns / NS_PER_MS)
                return -ERANGE;

        clock->wall_offset_ms += duration_ms;
        clock->mono_offset_ns += duration_ms * NS_PER_MS;
        if (clock->is_frozen) {
                clock->frozen.wall_ms += duration_ms;
                clock->frozen.mono_ns += duration_ms * NS_PER_MS;
        }
        return 0;
}

void test_clock_freeze(struct test_clock *clock, struct now real) {
        clock->frozen = test_clock_read(clock, real);
        clock->is_frozen = true;
}

void test_clock_resume(struct test_clock *clock, struct now real) {
        if (!clock->is_frozen)
                return;

        clock->wall_offset_ms = clock->frozen.wall_ms - real.wall_ms;
        clock->mono_offset_ns = clock->frozen.mono_ns - real.mono_ns;
        clock->is_frozen = false;
}

void test_clock_reset(struct test_clock *clock) {
        clock->is_frozen = false;
        clock->wall_offset_ms = 0;
        clock->mono_offset_ns = 0;
        clear_skews(clock);
}

static struct skew *find_skew(const struct test_clock *clock, struct slice client) {
        for (size_t i = 0; i < clock->n_skews; i++)
                if (slice_equal(buf_slice(&clock->skews[i].client), client))
                        return &clock->skews[i];
        return NULL;
}

int test_clock_skew(struct test_clock *clock, struct slice client, int64_t ahead_ms) {
        struct skew *skew = find_skew(clock, client);
        struct skew added = { .ahead_ms = ahead_ms };
        int r;

        if (skew && ahead_ms == 0) {
                buf_deinit(&skew->client);
                *skew = clock->skews[--clock->n_skews];
        } else if (skew) {
                skew->ahead_ms = ahead_ms;
        }
        if (skew || ahead_ms == 0)
                return 0;
        if (clock->n_skews == TEST_CLOCK_SKEWS_MAX)
                return -ENOSPC;
        r = array_reserve((void **)&clock->skews, &clock->skews_capacity, clock->n_skews + 1,
                          sizeof(*clock->skews));
        if (r < 0)
                return r;

        buf_append_slice(&added.client, client);
        if (buf_failed(&added.client))
                return -ENOMEM;
        clock->skews[clock->n_skews++] = added;
        return 0;
}

int64_t test_clock_skewed_ms(const struct test_clock *clock, struct slice client, int64_t wall_ms) {
        const struct skew *skew = find_skew(clock, client);
        int64_t skewed_ms;

        if (!skew)
                return wall_ms;
        if (__builtin_add_overflow(wall_ms, skew->ahead_ms, &skewed_ms))
                return INT64_MAX;
        return skewed_ms < 0 ? 0 : skewed_ms;
}
