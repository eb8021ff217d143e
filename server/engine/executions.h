/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/result.h"
#include "protocol/companion.h"

/*
 * Executed requests whose end the plugin may not know, by broker run and number
 * (common/protocol/companion.h). The plugin sends such a request again with the same number: then
 * the store repeats the reply. The content of a request (engine/dedup.h) does not tell whether it
 * was executed: two equal requests without a timestamp are two requests.
 *
 * Only requests that may have changed a key are here. Others are executed again, and so are
 * requests that ended with an error: nobody has had their replies.
 *
 * The places are fixed, and an execution is never removed: a later one takes its place. The plugin
 * has sent at most COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX records without an end, and
 * their numbers have no gaps. So the place of a number is free for the same run after
 * EXECUTIONS_SLOTS numbers. Each slot has one place for each of the last two runs: the store may
 * serve two brokers in turn.
 */
#define EXECUTIONS_SLOTS  256
#define EXECUTIONS_PLACES (2 * EXECUTIONS_SLOTS)

struct request_id {
        uint64_t broker_run;
        uint64_t number; /* above 0; 0: none, the request came through a broker without the plugin */
};

struct executed_request {
        struct request_id id; /* number 0: the place is free */
        uint64_t order;       /* ascending over all executions */
        uint32_t place;       /* index into the places */
        struct result result;
};

struct executions {
        struct executed_request places[EXECUTIONS_PLACES];
        uint64_t last_order;
};

/* A place gets another execution. */
struct execution_row {
        struct executed_request before, after;
};

/* Return the execution of this request, or NULL. Borrowed until the next change. */
const struct executed_request *executions_find(const struct executions *executions, struct request_id id);

/* Add the execution of a request that is not found. Returns what has changed. */
struct execution_row executions_add(struct executions *executions, struct request_id id,
                                    struct result result);

/* Undo executions_add(). Call for the last one first. */
void executions_undo(struct executions *executions, const struct execution_row *row);

/*
 * Put an execution of an earlier run of the store, or of another store, into its place. Returns 0,
 * or -EBADMSG if this place is not one of its number.
 */
int executions_put(struct executions *executions, const struct executed_request *execution);
