/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/timeline.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

void timeline_deinit(struct timeline *timeline) {
        while (timeline->n > 0)
                free(timeline->events[--timeline->n].message);
        free(timeline->events);
}

void timeline_plan(struct timeline *timeline, struct timeline_event event) {
        size_t at = timeline->n;

        ASSERT(array_reserve((void **)&timeline->events, &timeline->capacity, timeline->n + 1,
                             sizeof(*timeline->events)) == 0);
        for (; at > 0 && timeline->events[at - 1].at_ns <= event.at_ns; at--)
                timeline->events[at] = timeline->events[at - 1];
        timeline->events[at] = event;
        timeline->n++;
}

int64_t timeline_next(const struct timeline *timeline) {
        return timeline->n > 0 ? timeline->events[timeline->n - 1].at_ns : INT64_MAX;
}

struct timeline_event timeline_take(struct timeline *timeline) {
        ASSERT(timeline->n > 0);
        return timeline->events[--timeline->n];
}
