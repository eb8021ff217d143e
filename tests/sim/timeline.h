/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/* Planned events by time. Events of the same time happen in the order in which they were planned. */

struct world;

struct timeline_event {
        int64_t at_ns;
        void (*happen)(struct world *world, struct timeline_event *event);
        uint64_t number; /* its meaning, and that of message, is defined by the function */
        uint64_t
                generation; /* of the connection or run that planned it; the function ignores the event if that has ended */
        struct message *message; /* owned */
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
