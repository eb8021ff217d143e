/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdio.h>

#include "sim/cluster/cluster.h"
#include "sim/options.h"

static const char *const fault_names[N_PLANTS] = {
#define PLANT_TEXT(name, text) [name] = text,
        PLANTED(PLANT_TEXT)
#undef PLANT_TEXT
};

static void print_tally(const struct tally *tally) {
        for (size_t i = ELECTION_WINS_NEW; i <= ELECTION_WINS_EXPIRED; i++)
                printf("wins, %s: %" PRIu64 "\n", election_reason_text((enum election_reason)i),
                       tally->n_wins[i]);
        printf("of these wins %" PRIu64 " failed; %" PRIu64 " transactions, %" PRIu64 " sent again, %" PRIu64
               " acknowledged; %" PRIu64 " reads with a lease, %" PRIu64 " proven; %" PRIu64
               " leaders ended, of which %" PRIu64 " had given up\n",
               tally->n_lost_wins, tally->n_transactions, tally->n_repeated, tally->n_acknowledged,
               tally->n_reads, tally->n_proven, tally->n_ended, tally->n_given_up);
        if (tally->n_failovers > 0)
                printf("machine of the leader lost %" PRIu64
                       " times, lease 3 s: another leads after %" PRId64 " ms on average, %" PRId64
                       " ms at most\n",
                       tally->n_failovers, tally->failover_ns / (int64_t)tally->n_failovers / NS_PER_MS,
                       tally->longest_failover_ns / NS_PER_MS);
}

int main(int n_arguments, char **arguments) {
        struct simulation_options options =
                simulation_options_read(n_arguments, arguments, fault_names, N_PLANTS);
        struct tally tally = { 0 };

        cluster_plant = (enum plant)options.fault;
        for (uint64_t i = 0; i < options.n_runs; i++)
                world_run(options.seed + i, &tally);
        printf("%" PRIu64 " runs from seed %" PRIu64 "\n", options.n_runs, options.seed);
        print_tally(&tally);
        return 0;
}
