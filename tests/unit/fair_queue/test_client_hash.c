/* SPDX-License-Identifier: Apache-2.0 */

/* A client cannot choose ids that are in one bucket. */

#include <criterion/criterion.h>
#include <stdio.h>

#include "fair_queue/fair_queue.c" /* for the hash that the table has stored */

#define N_IDS   64
#define BUCKETS 0xFFFF

static unsigned int default_hash(const char *text) {
        unsigned int hash;

        HASH_JEN(text, strlen(text), hash);
        return hash;
}

Test(client_hash, ids_that_collide_without_a_key_do_not_collide_in_the_table) {
        struct fair_queues queues = { 0 };
        struct fair_queue *opened[N_IDS];
        unsigned int first = default_hash("0"), n_in_first_bucket = 0, n_ids = 0, bucket = 0;
        char id[24];

        for (unsigned int i = 0; n_ids < N_IDS; i++) {
                struct fair_queue *queue;

                snprintf(id, sizeof(id), "%u", i);
                if ((default_hash(id) & BUCKETS) != (first & BUCKETS))
                        continue;
                cr_assert_eq(fair_queues_open(&queues, slice_from_string(id), &queue), 0);
                opened[n_ids] = queue;
                if (n_ids++ == 0)
                        bucket = queue->hh.hashv & BUCKETS;
                n_in_first_bucket += (queue->hh.hashv & BUCKETS) == bucket;
        }

        cr_expect_lt(n_in_first_bucket, N_IDS / 4);
        for (size_t i = 0; i < N_IDS; i++)
                fair_queues_close(&queues, opened[i]);
        fair_queues_deinit(&queues);
}
