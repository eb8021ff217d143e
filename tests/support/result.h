/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/assert.h"
#include "codec/encoder.h"

/* Results of requests, and what clients see of them: no test lists the fields of struct result. */

/*
 * A result whose fields have extreme values. The initializer has no names, so that the compiler names a new
 * field without a value here.
 */
static inline struct result result_extreme(enum outcome outcome) {
        return (struct result){ { INT64_MAX, INT32_MAX - 1 }, outcome, true };
}

/* Append the outcome's name, and what a client sees of the reply: its payload and user properties. */
static inline void reply_append(struct buf *buf, const struct reply *reply) {
        struct encoder encoder = { .node_id = SLICE_LITERAL("StateStore") };
        struct message message;

        ASSERT(encoder_reply(&encoder, reply, &message) == 0);
        buf_append_format(buf, "%s\n", outcome_name(reply->result.outcome));
        buf_append_slice(buf, message.payload);
        for (size_t i = 0; i < message.n_user_properties; i++) {
                buf_append_slice(buf, message.user_properties[i].name);
                buf_append_string(buf, "=");
                buf_append_slice(buf, message.user_properties[i].value);
                buf_append_string(buf, "\n");
        }
        encoder_deinit(&encoder);
}

/* Append the same of a reply with this result; only the outcome's name if a reply needs more. */
static inline void result_append(struct buf *buf, struct result result) {
        if (outcome_is_in_result(result.outcome))
                reply_append(buf, &(struct reply){ .result = result });
        else
                buf_append_string(buf, outcome_name(result.outcome));
}
