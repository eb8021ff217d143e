/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/random_reads.h"

#include <stdlib.h>

#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"

struct random_place {
        size_t next;
        uint8_t rest[128 - sizeof(size_t)];
};

/*
 * A single cycle through all places: Sattolo, "An algorithm to generate a random cyclic
 * permutation" (1986).
 */
static void link_places(struct random_place *places, size_t n_places) {
        uint64_t state = 1;

        for (size_t i = 0; i < n_places; i++)
                places[i].next = i;
        for (size_t i = n_places - 1; i > 0; i--) {
                size_t other = random_next(&state) % i, next = places[i].next;

                places[i].next = places[other].next;
                places[other].next = next;
        }
}

void random_reads_init(struct random_reads *reads, size_t n_places) {
        *reads = (struct random_reads){ .places = calloc(n_places, sizeof(*reads->places)),
                                        .n_places = n_places };
        if (!reads->places)
                fail("out of memory");
        link_places(reads->places, n_places);
}

void random_reads_deinit(struct random_reads *reads) {
        free(reads->places);
        *reads = (struct random_reads){ 0 };
}

double random_reads_rate(const struct random_reads *reads) {
        int64_t begin_ns = stopwatch_cpu_ns();
        size_t at = 0;
        double rate;

        for (size_t i = 0; i < reads->n_places; i++)
                at = reads->places[at].next;
        rate = (double)reads->n_places * NS_PER_S / (double)(stopwatch_cpu_ns() - begin_ns);

        if (at != 0)
                fail("the cycle does not contain all places");
        return rate;
}
