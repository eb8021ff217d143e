/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "control/selection.h"
#include "pipeline/pipeline.h"

/* The commands `wait-for` that wait for requests. Each gets one reply: :1 if they have come, else :0. */

/* A pending wait-for request. */
struct request_wait {
        struct request_wait *next;
        struct selection selection;
        uint64_t after; /* only requests with a greater number count */
        uint64_t n_remaining;
        int64_t deadline_ns; /* real time, because the wait also ends while the test clock is frozen */
        struct message *message;
};

#define REQUEST_WAITS_MAX 100

/* Initialized with zeros; request_waits_deinit() frees all. */
struct request_waits {
        struct request_wait *first;
        size_t n_waits;
};

/* Free all waits without replies. */
void request_waits_deinit(struct request_waits *waits);

/*
 * Add a copy of *wait, with a copy of the message of the command. Takes ownership of its selection if
 * it returns 0. Returns -ENOSPC if there are REQUEST_WAITS_MAX, or -ENOMEM.
 */
int request_waits_add(struct request_waits *waits, const struct request_wait *wait,
                      const struct message *message);

/*
 * Count a received request in each wait. Replies to the waits that are complete. number: of the
 * request in the journal.
 */
void request_waits_notify(struct request_waits *waits, struct pipeline *pipeline, uint64_t number,
                          const struct request *request);

/* End the waits whose deadline is at or before real_ns. Replies :0 to them. */
void request_waits_end(struct request_waits *waits, struct pipeline *pipeline, int64_t real_ns);

/* Return the earliest deadline, in real monotonic time; INT64_MAX if there is none. */
int64_t request_waits_next_deadline(const struct request_waits *waits);
