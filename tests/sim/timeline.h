/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/* What is going to happen, and when. Of two at one time the one that was planned first happens first. */

struct world;

struct timeline_event {
        int64_t at_ns;
        void (*happen)(struct world *world, struct timeline_event *happening);
        uint64_t number; /* whose meaning is the function's, as the next one's */
        uint64_t generation;
        struct message *message; /* owned */
};

struct timeline {
        struct timeline_event *happenings; /* the next one last */
        size_t n, capacity;
};

void timeline_deinit(struct timeline *timeline);
void timeline_plan(struct timeline *timeline, struct timeline_event happening);

/* INT64_MAX where nothing is planned. */
int64_t timeline_next(const struct timeline *timeline);

/* The next one, which there must be. Its message is the caller's. */
struct timeline_event timeline_take(struct timeline *timeline);
