/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check.h"
#include "sim/world.h"

#ifdef SIM_PLANTED
static const char *const planted_names[N_PLANTED] = {
        [PLANTED_NONE] = "none",
        [PLANTED_LOST_WRITE] = "lost-write",
        [PLANTED_LOST_REFUSED] = "lost-refused",
        [PLANTED_EARLY_COMMIT] = "early-commit",
        [PLANTED_LOST_CLOCK] = "lost-clock",
        [PLANTED_LOST_CLOCK_ALONE] = "lost-clock-alone",
        [PLANTED_LOST_TOKEN] = "lost-token",
        [PLANTED_LOST_REPLIES] = "lost-replies",
        [PLANTED_LOST_EXECUTIONS] = "lost-executions",
        [PLANTED_LATE_CLOCK] = "late-clock",
        [PLANTED_EARLY_CLOCK] = "early-clock",
        [PLANTED_OTHER_REQUEST] = "other-request",
        [PLANTED_SWAPPED] = "swapped",
        [PLANTED_REPLIES_FIRST] = "replies-first",
        [PLANTED_LOST_NOTIFIED] = "lost-notified",
        [PLANTED_NO_ROOM] = "no-room",
        [PLANTED_LOST_REQUESTS] = "lost-requests",
        [PLANTED_REPEATED] = "repeated",
        [PLANTED_NOT_HANDED_OVER] = "not-handed-over",
        [PLANTED_OVERTAKEN] = "overtaken",
        [PLANTED_MIXED] = "mixed",
        [PLANTED_LOST_PENDING] = "lost-pending",
        [PLANTED_OLD_WELCOME] = "old-welcome",
        [PLANTED_OLD_POLICY] = "old-policy",
        [PLANTED_LONG_LIFE] = "long-life",
        [PLANTED_LOST_PAGE] = "lost-page",
        [PLANTED_OLD_TOKEN] = "old-token",
        [PLANTED_SHARED_QUEUE] = "shared-queue",
        [PLANTED_RECORDS_KEPT] = "records-kept",
};

static bool plant(const char *name) {
        for (int i = 0; i < N_PLANTED; i++)
                if (strcmp(planted_names[i], name) == 0) {
                        check_planted = (enum planted)i;
                        return true;
                }
        return false;
}

static void print_planted(void) {
        for (int i = 1; i < N_PLANTED; i++)
                printf("%s\n", planted_names[i]);
}
#else
static bool plant(const char *name) {
        (void)name;
        return false;
}

static void print_planted(void) {
}
#endif

static int usage(void) {
        fprintf(stderr, "usage: sim [--seed N] [--runs M] [--trace] [--plant FAULT] | --planted\n"
                        "\n"
                        "Simulates M runs with the seeds N, N + 1 ..., and prints the first seed that "
                        "violates a guarantee.\n");
        return 2;
}

int main(int n_arguments, char **arguments) {
        uint64_t seed = 1, n_runs = 1000;
        struct tally tally = { 0 };

        for (int i = 1; i < n_arguments; i += 2) {
                const char *value = i + 1 < n_arguments ? arguments[i + 1] : "";
                bool is_valid;

                if (strcmp(arguments[i], "--planted") == 0) {
                        print_planted();
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
        printf("%" PRIu64 " runs from seed %" PRIu64 ": %" PRIu64 " requests in %" PRIu64 " copies, %" PRIu64
               " changes, %" PRIu64 " notifications, %" PRIu64 " registrations at the end, %" PRIu64
               " commits of which %" PRIu64 " failed, %" PRIu64 " starts, %" PRIu64 " scans over %" PRIu64
               " pages\n",
               n_runs, seed, tally.n_requests, tally.n_copies, tally.n_changes, tally.n_notifications,
               tally.n_registered, tally.n_commits, tally.n_refused, tally.n_restarts, tally.n_scans,
               tally.n_pages);
        return 0;
}
