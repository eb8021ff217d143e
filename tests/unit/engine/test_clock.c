/* SPDX-License-Identifier: Apache-2.0 */

/* PROTOCOL.md "Hybrid logical clocks": the next version. */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "engine/clock.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

/* The upper limit of a counter that the store assigns. */
#define COUNTER_END     INT32_MAX
#define OWN_COUNTER_END (INT32_MAX - (1 << 20))

static const struct {
        const char *name;
        struct version last;
        int64_t wall_ms;
        struct hlc remote;
        struct version next;
} received[] = {
        { "the protocol's example",
          { 1696374424000, 3 },
          1696374425000,
          { 1696374425000, 0, S("Client1") },
          { 1696374425000, 1 } },
        { "l' = l = m.l: the greater counter is ours", { 50, 9 }, 40, { 50, 4, S("n") }, { 50, 10 } },
        { "l' = l = m.l: the greater counter is theirs", { 50, 4 }, 40, { 50, 9, S("n") }, { 50, 10 } },
        { "l' = l = m.l: equal counters", { 50, 4 }, 40, { 50, 4, S("n") }, { 50, 5 } },
        { "l' = l = m.l = pt", { 50, 4 }, 50, { 50, 9, S("n") }, { 50, 10 } },
        { "l' = l alone: their counter does not matter", { 50, 4 }, 40, { 49, 99, S("n") }, { 50, 5 } },
        { "l' = l = pt", { 50, 4 }, 50, { 49, 99, S("n") }, { 50, 5 } },
        { "l' = m.l alone: our counter does not matter", { 49, 99 }, 40, { 50, 4, S("n") }, { 50, 5 } },
        { "l' = m.l = pt", { 49, 99 }, 50, { 50, 4, S("n") }, { 50, 5 } },
        { "l' = pt alone: from 0", { 49, 99 }, 50, { 48, 99, S("n") }, { 50, 0 } },
        { "the first reading of all", { 0, 0 }, 50, { 0, 0, S("n") }, { 50, 0 } },
        { "the wall clock has stepped back", { 50, 4 }, 10, { 10, 0, S("n") }, { 50, 5 } },

        { "their counter is the last below ours",
          { 0, 0 },
          1,
          { 50, COUNTER_END - 2, S("n") },
          { 50, COUNTER_END - 1 } },
        { "their counter leaves no room", { 0, 0 }, 1, { 50, COUNTER_END - 1, S("n") }, { 51, 0 } },
        { "their counter is the last of 31 bits", { 0, 0 }, 1, { 50, COUNTER_END, S("n") }, { 51, 0 } },
        { "their counter is of 32 bits", { 0, 0 }, 1, { 50, UINT32_MAX, S("n") }, { 51, 0 } },
        { "their counter is past 32 bits", { 0, 0 }, 1, { 50, UINT64_C(1) << 32, S("n") }, { 51, 0 } },
        { "their counter is the last of all", { 0, 0 }, 1, { 50, UINT64_MAX, S("n") }, { 51, 0 } },
        { "their last counter, and ours the same ms", { 50, 3 }, 50, { 50, UINT64_MAX, S("n") }, { 51, 0 } },
        { "their last counter, a ms before", { 50, 3 }, 50, { 49, UINT64_MAX, S("n") }, { 50, 4 } },
        { "our counter leaves no room", { 50, OWN_COUNTER_END - 1 }, 50, { 50, 0, S("n") }, { 51, 0 } },
        { "our counter follows theirs", { 50, COUNTER_END - 1 }, 50, { 50, 0, S("n") }, { 51, 0 } },
        { "our counter leaves no room, their ms is older",
          { 50, COUNTER_END - 1 },
          1,
          { 49, 0, S("n") },
          { 51, 0 } },
};

Test(clock_receive, follows_the_rule) {
        for (size_t i = 0; i < N_ROWS(received); i++) {
                struct clock clock = { received[i].last };
                struct version next = clock_receive(&clock, received[i].wall_ms, received[i].remote);

                cr_expect_eq(next.wall_ms, received[i].next.wall_ms, ROW(received, i));
                cr_expect_eq(next.counter, received[i].next.counter, ROW(received, i));
                cr_expect_eq(clock.last.wall_ms, next.wall_ms, ROW(received, i));
                cr_expect_eq(clock.last.counter, next.counter, ROW(received, i));
        }
}

static const struct {
        const char *name;
        struct version last;
        int64_t wall_ms;
        struct version next;
} ticks[] = {
        { "the first of all", { 0, 0 }, 1696374425000, { 1696374425000, 0 } },
        { "the next ms", { 50, 4 }, 51, { 51, 0 } },
        { "the same ms", { 50, 4 }, 50, { 50, 5 } },
        { "the wall clock has stepped back", { 50, 4 }, 10, { 50, 5 } },
        { "the last counter", { 50, OWN_COUNTER_END - 2 }, 50, { 50, OWN_COUNTER_END - 1 } },
        { "past the last counter", { 50, OWN_COUNTER_END - 1 }, 50, { 51, 0 } },
        { "past the last counter, stepped back", { 50, OWN_COUNTER_END - 1 }, 10, { 51, 0 } },
        { "past the last counter, a new ms", { 50, OWN_COUNTER_END - 1 }, 51, { 51, 0 } },
        { "the last counter that a request causes", { 50, COUNTER_END - 1 }, 50, { 51, 0 } },
};

Test(clock_tick, follows_the_rule) {
        for (size_t i = 0; i < N_ROWS(ticks); i++) {
                struct clock clock = { ticks[i].last };
                struct version next = clock_tick(&clock, ticks[i].wall_ms);

                cr_expect_eq(next.wall_ms, ticks[i].next.wall_ms, ROW(ticks, i));
                cr_expect_eq(next.counter, ticks[i].next.counter, ROW(ticks, i));
        }
}

static bool is_after(struct version a, struct version b) {
        return a.wall_ms != b.wall_ms ? a.wall_ms > b.wall_ms : a.counter > b.counter;
}

Test(clock, never_decreases) {
        static const uint64_t counters[] = {
                0, 1, OWN_COUNTER_END, COUNTER_END - 1, COUNTER_END, UINT64_MAX
        };
        struct clock clock = { 0 };
        struct version before = { 0 };
        int64_t wall_ms = 1000000;

        srand(1);
        for (int i = 0; i < 100000; i++) {
                struct hlc remote = { wall_ms + rand() % 7 - 3, counters[rand() % 6], S("n") };
                struct version next;

                wall_ms += rand() % 5 - 2; /* small steps in both directions */
                next = rand() % 2 ? clock_tick(&clock, wall_ms) : clock_receive(&clock, wall_ms, remote);
                cr_assert(is_after(next, before), "step %d", i);
                cr_assert_lt(next.counter, COUNTER_END, "step %d", i);
                before = next;
        }
}

Test(clock, gives_a_version_after_the_received_timestamp) {
        static const uint64_t counters[] = { 0, 1, COUNTER_END - 1, COUNTER_END, UINT64_MAX };
        struct clock clock = { 0 };

        srand(1);
        for (int i = 0; i < 100000; i++) {
                struct hlc remote = { 1000 + rand() % 1000, counters[rand() % 5], S("n") };
                struct version next = clock_receive(&clock, 1000 + rand() % 1000, remote);

                cr_assert(next.wall_ms > remote.wall_ms ||
                                  (next.wall_ms == remote.wall_ms && next.counter > remote.counter),
                          "step %d", i);
        }
}

static const struct {
        const char *name;
        int64_t remote_ms, wall_ms;
        bool is_too_far;
} skews[] = {
        { "the same", 1000000, 1000000, false },
        { "a minute ahead", 1060000, 1000000, false },
        { "over a minute ahead", 1060001, 1000000, true },
        { "far behind", 0, 1000000, false },
        { "as far ahead as can be", INT64_MAX, 0, true },
        { "a minute before the end of time", INT64_MAX, INT64_MAX - 60000, false },
        { "a wall clock at the epoch", 60000, 0, false },
};

Test(clock, rejects_a_timestamp_more_than_a_minute_ahead) {
        for (size_t i = 0; i < N_ROWS(skews); i++)
                cr_expect_eq(clock_is_too_far_ahead((struct hlc){ skews[i].remote_ms, 0, S("n") },
                                                    skews[i].wall_ms),
                             skews[i].is_too_far, ROW(skews, i));
}
