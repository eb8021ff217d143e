/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The longest step while an empty store is filled. Every key has a deadline, so that all structures
 * grow: the table, the deadlines, the remembered replies.
 *
 * Prints elapsed time and CPU time. Elapsed time is longer if the core ran another program.
 */

#include <stdio.h>

#include "bench/bare_store.h"
#include "bench/bench_engine.h"
#include "bench/stopwatch.h"

#define PX_MS 86400000

struct longest {
        int64_t wall_ns, cpu_ns;
};

static void grow(struct bare_store *store, uint64_t n_keys, struct longest *longest) {
        int64_t wall_ns = stopwatch_ns(), cpu_ns = stopwatch_cpu_ns();

        for (uint64_t key = 0; key < n_keys; key++) {
                int64_t wall_end_ns, cpu_end_ns;

                bare_store_set(store, key, PX_MS);
                cpu_end_ns = stopwatch_cpu_ns();
                wall_end_ns = stopwatch_ns();
                if (cpu_end_ns - cpu_ns > longest->cpu_ns)
                        longest->cpu_ns = cpu_end_ns - cpu_ns;
                if (wall_end_ns - wall_ns > longest->wall_ns)
                        longest->wall_ns = wall_end_ns - wall_ns;
                cpu_ns = cpu_end_ns;
                wall_ns = wall_end_ns;
        }
}

void engine_growth(uint64_t n_keys, uint64_t n_rounds) {
        for (uint64_t round = 0; round < n_rounds; round++) {
                int64_t begin_ns = stopwatch_ns();
                struct longest longest = { 0 };
                struct bare_store store;

                bare_store_init(&store, BARE_REMEMBERED_BYTES);
                grow(&store, n_keys, &longest);
                printf("growth_s %.2f\n", (double)(stopwatch_ns() - begin_ns) / NS_PER_S);
                printf("growth_step_cpu_max_ms %.3f\n", (double)longest.cpu_ns / NS_PER_MS);
                printf("growth_step_max_ms %.3f\n", (double)longest.wall_ns / NS_PER_MS);
                bare_store_deinit(&store);
        }
}
