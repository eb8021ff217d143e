/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many keys expire within one second, or all within one millisecond (burst). Measures the longest
 * tick and the greatest delay of a key, on the real clock. A key that expires early ends the
 * program. Between ticks the store replies to a request.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bench/bare_store.h"
#include "bench/bench_engine.h"
#include "bench/fail.h"
#include "bench/stopwatch.h"

/* Between the last SET and the first deadline. */
#define LEAD_MS 500

struct expiry {
        int64_t longest_tick_ns, longest_tick_cpu_ns, latest_ns;
        uint64_t n_expired;
};

/*
 * Set the keys. All deadlines are later than the last SET. Returns false if that took longer than
 * fill_ms and LEAD_MS.
 */
static bool fill(struct bare_store *store, uint64_t n_keys, uint64_t within_ms, uint64_t fill_ms) {
        int64_t first_ns = stopwatch_ns() + (int64_t)(fill_ms + LEAD_MS) * NS_PER_MS;

        for (uint64_t key = 0; key < n_keys; key++) {
                int64_t remaining_ns =
                        first_ns + (int64_t)(within_ms * key / n_keys) * NS_PER_MS - store->now.mono_ns;

                if (remaining_ns < NS_PER_MS)
                        return false;
                bare_store_set(store, key, (uint64_t)(remaining_ns / NS_PER_MS));
        }
        bare_store_flush(store);
        return true;
}

/* Check the changes of a tick. */
static void check(const struct bare_store *store, struct expiry *expiry) {
        for (size_t i = 0; i < store->effects.n_changes; i++) {
                const struct change *change = &store->effects.changes[i];
                int64_t late_ns;

                if (change->type != CHANGE_ENTRY || change->entry.after)
                        continue;
                late_ns = store->now.mono_ns - change->entry.before_deadline_ns;
                if (late_ns < 0)
                        fail("a key expired %" PRId64 " ns early", -late_ns);
                if (late_ns > expiry->latest_ns)
                        expiry->latest_ns = late_ns;
                expiry->n_expired++;
        }
}

/* Measured times of ticks. */
struct times {
        int64_t wall_ns, cpu_ns;
};

static void time_begin(struct times *took) {
        took->wall_ns -= stopwatch_ns();
        took->cpu_ns -= stopwatch_cpu_ns();
}

static void time_end(struct times *took) {
        took->cpu_ns += stopwatch_cpu_ns();
        took->wall_ns += stopwatch_ns();
}

static void expire(struct bare_store *store, uint64_t n_keys, struct expiry *expiry) {
        while (expiry->n_expired < n_keys) {
                struct times took = { 0 };

                bare_store_get(store, 0);
                bare_store_flush(store); /* reads the clock */
                if (engine_next_deadline(store->engine) > store->now.mono_ns)
                        continue;

                time_begin(&took);
                bare_store_tick(store);
                time_end(&took);
                check(store, expiry);
                time_begin(&took);
                bare_store_flush(store);
                time_end(&took);
                if (took.wall_ns > expiry->longest_tick_ns)
                        expiry->longest_tick_ns = took.wall_ns;
                if (took.cpu_ns > expiry->longest_tick_cpu_ns)
                        expiry->longest_tick_cpu_ns = took.cpu_ns;
        }
}

static void run(const char *name, uint64_t n_keys, uint64_t within_ms, uint64_t fill_ms) {
        struct expiry expiry = { 0 };
        struct bare_store store;

        bare_store_init(&store, BARE_REMEMBERED_BYTES);
        while (!fill(&store, n_keys, within_ms, fill_ms)) { /* another program uses the processor */
                fill_ms = 2 * fill_ms + LEAD_MS;
                bare_store_deinit(&store);
                bare_store_init(&store, BARE_REMEMBERED_BYTES);
        }
        expire(&store, n_keys, &expiry);
        if (engine_stats(store.engine).n_keys != 0)
                fail("keys are left");
        printf("%s_tick_max_ms %.3f\n", name, (double)expiry.longest_tick_ns / NS_PER_MS);
        printf("%s_tick_cpu_max_ms %.3f\n", name, (double)expiry.longest_tick_cpu_ns / NS_PER_MS);
        printf("%s_latest_ms %.3f\n", name, (double)expiry.latest_ns / NS_PER_MS);
        bare_store_deinit(&store);
}

/* Return the time that setting this many keys takes. */
static uint64_t measure_fill_ms(uint64_t n_keys) {
        int64_t begin_ns = stopwatch_ns();
        struct bare_store store;

        bare_store_init(&store, BARE_REMEMBERED_BYTES);
        for (uint64_t key = 0; key < n_keys; key++)
                bare_store_set(&store, key, UINT64_C(86400000));
        bare_store_deinit(&store);
        return (uint64_t)((stopwatch_ns() - begin_ns) / NS_PER_MS);
}

void engine_expiry(uint64_t n_keys, uint64_t n_rounds) {
        uint64_t fill_ms = measure_fill_ms(n_keys) * 2;

        for (uint64_t round = 0; round < n_rounds; round++) {
                run("expiry", n_keys, 1000, fill_ms);
                run("expiry_burst", n_keys, 0, fill_ms);
        }
}
