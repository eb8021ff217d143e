/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/result.h"
#include "protocol/companion.h"

/*
 * Executed requests whose end the plugin may not know, by their number in the broker run that is
 * served (common/protocol/companion.h). The plugin sends such a request again with the same number:
 * then the store repeats the reply. The content of a request (engine/dedup.h) does not tell whether
 * it was executed: two equal requests without a timestamp are two requests.
 *
 * Only requests that may have changed a key are here. Others are executed again, and so are
 * requests that ended with an error: nobody has had their replies.
 *
 * The places are fixed, and an execution is not removed: a later one takes its place. The plugin
 * has sent at most COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX records without an end, and
 * their numbers have no gaps. So the place of a number is free again after EXECUTIONS_PLACES numbers.
 * For another broker run, the table starts empty: the store ends the requests that another run has
 * numbered before (server/pipeline/peer.h).
 */
#define EXECUTIONS_PLACES 256

struct executed_request {
        uint64_t number; /* above 0; 0: the place is free */
        struct result result;
};

/* All zeros is an empty table. */
struct executions {
        struct executed_request places[EXECUTIONS_PLACES];
};

/* The index of the place of this number. */
static inline size_t executions_place(uint64_t number) {
        return (size_t)(number % EXECUTIONS_PLACES);
}

/* Return the execution of this request, or NULL. Borrowed until the next change. */
const struct executed_request *executions_find(const struct executions *executions, uint64_t number);

/*
 * Put an execution into the place of its number. Returns what was in the place, with
 * the number 0 if it was free.
 */
struct executed_request executions_put(struct executions *executions, struct executed_request execution);
