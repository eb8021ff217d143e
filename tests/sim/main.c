/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "sim/check.h"
#include "sim/options.h"
#include "sim/world.h"

static const char *const fault_names[] = {
        [PLANTED_NONE] = "none",
#ifdef SIM_PLANTED
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
#endif
};

int main(int n_arguments, char **arguments) {
        struct simulation_options options =
                simulation_options_read(n_arguments, arguments, fault_names, ARRAY_LENGTH(fault_names));
        struct tally tally = { 0 };

#ifdef SIM_PLANTED
        check_planted = (enum planted)options.fault;
#endif
        for (uint64_t i = 0; i < options.n_runs; i++)
                world_run(options.seed + i, &tally);
        printf("%" PRIu64 " runs from seed %" PRIu64 ": %" PRIu64 " requests in %" PRIu64 " copies, %" PRIu64
               " changes, %" PRIu64 " notifications, %" PRIu64 " registrations at the end, %" PRIu64
               " commits of which %" PRIu64 " failed, %" PRIu64 " starts, %" PRIu64 " scans over %" PRIu64
               " pages\n",
               options.n_runs, options.seed, tally.n_requests, tally.n_copies, tally.n_changes,
               tally.n_notifications, tally.n_registered, tally.n_commits, tally.n_refused, tally.n_restarts,
               tally.n_scans, tally.n_pages);
        return 0;
}
