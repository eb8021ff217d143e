/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "sim/check.h"
#include "sim/cluster/cluster.h"

static const char *const planted_names[N_PLANTS] = {
#define PLANT_TEXT(name, text) [name] = text,
        PLANTED(PLANT_TEXT)
#undef PLANT_TEXT
};

static bool plant(const char *name) {
        for (int i = 0; i < N_PLANTS; i++)
                if (strcmp(planted_names[i], name) == 0) {
                        cluster_plant = (enum plant)i;
                        return true;
                }
        return false;
}

static int usage(void) {
        fprintf(stderr, "usage: sim_cluster [--seed N] [--runs M] [--trace] [--plant FAULT] | --planted\n"
                        "\n"
                        "Simulates M runs with the seeds N, N + 1 ..., and prints the first seed that "
                        "violates a guarantee.\n");
        return 2;
}

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
        uint64_t seed = 1, n_runs = 1000;
        struct tally tally = { 0 };

        for (int i = 1; i < n_arguments; i += 2) {
                const char *value = i + 1 < n_arguments ? arguments[i + 1] : "";
                bool is_valid;

                if (strcmp(arguments[i], "--planted") == 0) {
                        for (int fault = 1; fault < N_PLANTS; fault++)
                                printf("%s\n", planted_names[fault]);
                        return 0;
                }
                if (strcmp(arguments[i], "--trace") == 0) {
                        check_is_traced = true;
                        i--;
                        continue;
                }
                if (strcmp(arguments[i], "--seed") == 0)
                        is_valid = parse_uint64(slice_from_string(value), &seed) == 0;
                else if (strcmp(arguments[i], "--runs") == 0)
                        is_valid = parse_uint64(slice_from_string(value), &n_runs) == 0;
                else
                        is_valid = strcmp(arguments[i], "--plant") == 0 && plant(value);
                if (!is_valid)
                        return usage();
        }

        for (uint64_t i = 0; i < n_runs; i++)
                world_run(seed + i, &tally);
        printf("%" PRIu64 " runs from seed %" PRIu64 "\n", n_runs, seed);
        print_tally(&tally);
        return 0;
}
