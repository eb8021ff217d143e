/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Planned events by time. Events of the same time happen in the order in which they were planned.
 */

struct world;

struct timeline_event {
        int64_t at_ns;
        void (*happen)(struct world *world, struct timeline_event *event);
        uint64_t number;         /* argument of the function */
        struct message *message; /* owned; argument of the function */

        /*
         * The connection or run that planned the event. The function ignores the event if that
         * connection or run has ended.
         */
        uint64_t generation;
};

struct timeline {
        struct timeline_event *events; /* the next event is the last element */
        size_t n, capacity;
};

void timeline_deinit(struct timeline *timeline);
void timeline_plan(struct timeline *timeline, struct timeline_event event);

/* Time of the next event; INT64_MAX if nothing is planned. */
int64_t timeline_next(const struct timeline *timeline);

/* Take the next event; there must be one. The caller owns its message. */
struct timeline_event timeline_take(struct timeline *timeline);
