/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * What the memory can do: reads at random places, each of which says where the next one is, so that none can begin before
 * the last has ended. A table whose keys are in no cache is as fast as this allows: two such reads find a key.
 */

struct random_reads {
        struct random_place *places;
        size_t n_places;
};

/* A place takes about as much memory as a key with a value of 100 bytes. */
void random_reads_init(struct random_reads *reads, size_t n_places);
void random_reads_deinit(struct random_reads *reads);

/* Reads each place once. Returns reads a second. */
double random_reads_rate(const struct random_reads *reads);
