/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Latency of random memory reads: each read yields the address of the next, so that no two overlap.
 * It limits lookups in a table that exceeds the caches: finding a key takes two such reads.
 */

struct random_reads {
        struct random_place *places;
        size_t n_places;
};

/* Each place takes about the memory of a key with a value of 100 bytes. */
void random_reads_init(struct random_reads *reads, size_t n_places);
void random_reads_deinit(struct random_reads *reads);

/* Read each place once. Returns reads per second. */
double random_reads_rate(const struct random_reads *reads);
