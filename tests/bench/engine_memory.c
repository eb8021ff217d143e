/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of a key without the remembered reply of its SET. */

#include <stdio.h>

#include "bench/bare_store.h"
#include "bench/bench_engine.h"
#include "bench/process.h"

static double resident_of(uint64_t n_keys, uint64_t n_remembered_bytes) {
        uint64_t before = process_resident_bytes(0), after;
        struct bare_store store;

        bare_store_init(&store, n_remembered_bytes);
        bare_store_fill(&store, n_keys);
        after = process_resident_bytes(0);
        bare_store_deinit(&store);
        return (double)(after - before);
}

void engine_memory(uint64_t n_keys, uint64_t n_rounds) {
        (void)n_rounds; /* one round only: later rounds would reuse memory */
        printf("resident_bytes_per_key %.1f\n", resident_of(n_keys, 0) / (double)n_keys);
}
