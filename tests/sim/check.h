/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Check a guarantee of every run. If the condition is false, print the seed and the guarantee, and
 * exit with 1.
 */
#define CHECK(condition, guarantee)                                                                         \
        ((condition) ? (void)0 : check_failed(guarantee, #condition, __FILE__, __LINE__))

/* The seed that a failed check or assertion prints. */
void check_begin(uint64_t seed);

__attribute__((noreturn, cold)) void check_failed(const char *guarantee, const char *condition,
                                                  const char *file, int line);

/* With --trace: one line for each event. */
extern bool check_is_traced;
__attribute__((format(printf, 1, 2))) void check_trace(const char *format, ...);

/*
 * Faults planted in the world around the pipeline, to prove that the checks find them. The pipeline
 * itself is never changed. Only sim_planted is built with them. HELLO, WELCOME and frames are
 * messages of the companion protocol (common/protocol/companion.h).
 */
enum planted {
        PLANTED_NONE,
        PLANTED_LOST_WRITE,       /* the disk reports a batch as stored, and loses its last key */
        PLANTED_LOST_REFUSED,     /* the disk refuses a batch, and stores it */
        PLANTED_EARLY_COMMIT,     /* the disk reports a batch as stored, and never stores it */
        PLANTED_LOST_CLOCK,       /* the disk loses the versions that were assigned */
        PLANTED_LOST_CLOCK_ALONE, /* the disk loses the clock of a batch without changes */
        PLANTED_LOST_TOKEN,       /* the disk loses fencing tokens */
        PLANTED_LOST_REPLIES,     /* the disk loses remembered replies */
        PLANTED_LOST_EXECUTIONS,  /* the disk loses executed requests */
        PLANTED_LATE_CLOCK,       /* the pipeline's clock is late */
        PLANTED_EARLY_CLOCK,      /* the pipeline's clock is ahead */
        PLANTED_OTHER_REQUEST,    /* the network turns one request into two different ones */
        PLANTED_SWAPPED,          /* the checks see two published notifications in the wrong order */
        PLANTED_REPLIES_FIRST,    /* the checks see the replies of a frame before its other records */
        PLANTED_LOST_NOTIFIED,    /* the checks do not see a published notification */
        PLANTED_NO_ROOM,          /* the broker accepts no more messages */
        PLANTED_LOST_REQUESTS,    /* the requests of one client are dropped */
        PLANTED_REPEATED,         /* the plugin publishes a repeated notification again */
        PLANTED_NOT_HANDED_OVER,  /* the plugin reports a notification as delivered, and drops it */
        PLANTED_OVERTAKEN,        /* the plugin publishes replies before the notifications of their frame */
        PLANTED_MIXED,            /* after HELLO, the plugin sends new requests before kept KEYNOTIFYs */
        PLANTED_LOST_PENDING,     /* the disk loses pending notifications */
        PLANTED_OLD_WELCOME,      /* the plugin replies to HELLO with the WELCOME of the previous HELLO */
        PLANTED_OLD_POLICY,       /* a changed policy does not reach the pipeline */
        PLANTED_LONG_LIFE,        /* the disk adds an hour to each deadline */
        PLANTED_LOST_PAGE,        /* a client ignores the keys of a page */
        PLANTED_OLD_TOKEN,        /* a client requests the same page instead of the next */
        PLANTED_SHARED_QUEUE,     /* a control hook lets the requests of all clients wait in one queue */
        PLANTED_RECORDS_KEPT,     /* the plugin does not learn which broker was served last */
        N_PLANTED,
};

#ifdef SIM_PLANTED
extern enum planted check_planted;
#define IS_PLANTED(fault) (check_planted == (fault))
#else
#define IS_PLANTED(fault) false
#endif
