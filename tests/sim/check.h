/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What must hold of any run. Where it does not, the seed and the promise are printed and the program ends with 1. */
#define CHECK(condition, promise)                                                                           \
        ((condition) ? (void)0 : check_failed(promise, #condition, __FILE__, __LINE__))

/* Said when a check fails, and when the server itself gives up. */
void check_begin(uint64_t seed);

__attribute__((noreturn, cold)) void check_failed(const char *promise, const char *condition,
                                                  const char *file, int line);

/* What happens, a line each, where it is asked for. */
extern bool check_is_traced;
__attribute__((format(printf, 1, 2))) void check_trace(const char *format, ...);

/*
 * Faults planted in the world around the pipeline, to see that they are found: never in the pipeline itself. Only a program
 * that is built for them has any.
 */
enum planted {
        PLANTED_NONE,
        PLANTED_LOST_WRITE,       /* the disk says that it keeps a batch, and keeps all but one key */
        PLANTED_LOST_REFUSED,     /* it refuses a batch, and has kept a key of it */
        PLANTED_EARLY_COMMIT,     /* it says that a batch is safe before it is */
        PLANTED_LOST_CLOCK,       /* it forgets the versions that were given */
        PLANTED_LOST_CLOCK_ALONE, /* it forgets the clock of a batch without rows */
        PLANTED_LOST_TOKEN,       /* it forgets fencing tokens */
        PLANTED_LOST_ANSWERS,     /* it forgets which requests were answered */
        PLANTED_LATE_CLOCK,       /* the pipeline's clock is late */
        PLANTED_EARLY_CLOCK,      /* the pipeline's clock is ahead */
        PLANTED_OTHER_REQUEST,    /* the network makes two requests of one */
        PLANTED_SWAPPED,          /* notifications overtake each other */
        PLANTED_LOST_NOTIFIED,    /* one of them is lost */
        PLANTED_NO_ROOM,          /* the broker never keeps up again */
        PLANTED_LOST_REQUESTS,    /* what one client asks does not arrive */
        PLANTED_REPEATED,         /* the plugin hands over once more what is sent once more */
        PLANTED_OLD_WELCOME,      /* its answer to an earlier hello passes for one to the latest */
        PLANTED_OLD_POLICY,       /* a policy that has changed does not reach the pipeline */
        PLANTED_LONG_LIFE,        /* the disk adds an hour to each key's time */
        PLANTED_LOST_PAGE,        /* a client misses what a page of a scan lists */
        PLANTED_OLD_TOKEN,        /* it asks for that page again, not for the next one */
        N_PLANTED,
};

#ifdef SIM_PLANTED
extern enum planted check_planted;
#define IS_PLANTED(fault) (check_planted == (fault))
#else
#define IS_PLANTED(fault) false
#endif
