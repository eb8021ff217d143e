/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GETs and SETs of existing keys per second on one core, their allocations, and the rate of random
 * memory reads.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "bench/allocations.h"
#include "bench/bare_store.h"
#include "bench/bench_engine.h"
#include "bench/keys.h"
#include "bench/random_reads.h"
#include "bench/stopwatch.h"

static const struct kind {
        const char *name;
        bool is_set;
        enum key_order order;
} kinds[] = {
        { "get_uniform", false, KEYS_UNIFORM },
        { "get_zipf", false, KEYS_ZIPF },
        { "set_uniform", true, KEYS_UNIFORM },
        { "set_zipf", true, KEYS_ZIPF },
};

#define N_KINDS ARRAY_LENGTH(kinds)

struct allocated {
        uint64_t n_all, n_most; /* by all requests, and the maximum for one request */
};

static struct allocated run(struct bare_store *store, struct key_sequence *keys, bool is_set) {
        struct allocated allocated = { 0 };

        for (size_t i = 0; i < keys->n_numbers; i++) {
                uint64_t before = n_allocations, n;

                if (is_set)
                        bare_store_set(store, key_sequence_next(keys), 0);
                else
                        bare_store_get(store, key_sequence_next(keys));

                n = n_allocations - before;
                allocated.n_all += n;
                if (n > allocated.n_most)
                        allocated.n_most = n;
        }
        bare_store_flush(store);
        return allocated;
}

static void measure(struct bare_store *store, struct key_sequence *keys, const struct kind *kind) {
        int64_t begin_ns = stopwatch_cpu_ns();
        struct allocated allocated = run(store, keys, kind->is_set);
        int64_t took_ns = stopwatch_cpu_ns() - begin_ns;
        double n = (double)keys->n_numbers;

        printf("%s_per_s %.0f\n", kind->name, n * NS_PER_S / (double)took_ns);
        printf("%s_allocations %.4f\n", kind->name, (double)allocated.n_all / n);
        printf("%s_allocations_max %" PRIu64 "\n", kind->name, allocated.n_most);
}

void engine_rates(uint64_t n_keys, uint64_t n_rounds) {
        struct key_sequence keys[N_KINDS];
        struct random_reads reads;
        struct bare_store store;

        random_reads_init(&reads, n_keys);
        bare_store_init(&store, BARE_REMEMBERED_BYTES);
        bare_store_fill(&store, n_keys);
        for (size_t i = 0; i < N_KINDS; i++) {
                key_sequence_init(&keys[i], kinds[i].order, n_keys, n_keys, i + 1);
                run(&store, &keys[i], kinds[i].is_set); /* not measured: arrays and caches fill */
        }

        for (uint64_t round = 0; round < n_rounds; round++) {
                printf("reads_per_s %.0f\n", random_reads_rate(&reads));
                for (size_t i = 0; i < N_KINDS; i++)
                        measure(&store, &keys[i], &kinds[i]);
        }

        for (size_t i = 0; i < N_KINDS; i++)
                key_sequence_deinit(&keys[i]);
        bare_store_deinit(&store);
        random_reads_deinit(&reads);
}
