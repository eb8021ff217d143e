/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"

/* The replies that the fault rule `delay` holds back. Deadlines are those of the test clock. */

/* A reply that is sent later. */
struct delayed_reply {
        struct delayed_reply *next;
        struct message *message;
        int64_t deadline_ns; /* monotonic time of the test clock */
};

/* Initialized with zeros; delayed_replies_drop() frees all. */
struct delayed_replies {
        struct delayed_reply *first; /* by deadline */
        size_t n_replies, n_bytes;   /* bytes of payloads */
};

/*
 * Copy the reply, to send it in delay_ms. Drop it if it expires before, at a limit of delayed replies,
 * or if memory is short: the pipeline counts this.
 */
void delayed_replies_add(struct delayed_replies *replies, struct pipeline *pipeline, struct message reply,
                         int64_t delay_ms, struct now now);

/* Send the replies whose deadline is at or before deadline_ns. */
void delayed_replies_send(struct delayed_replies *replies, struct pipeline *pipeline, int64_t deadline_ns);

/* Free all replies without sending them. */
void delayed_replies_drop(struct delayed_replies *replies);

/* Return the earliest deadline; INT64_MAX if there is none. */
int64_t delayed_replies_next_deadline(const struct delayed_replies *replies);
