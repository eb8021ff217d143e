/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/timeline.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

void timeline_deinit(struct timeline *timeline) {
        while (timeline->n > 0)
                free(timeline->happenings[--timeline->n].message);
        free(timeline->happenings);
}

void timeline_plan(struct timeline *timeline, struct timeline_event happening) {
        size_t at = timeline->n;

        ASSERT(array_reserve((void **)&timeline->happenings, &timeline->capacity, timeline->n + 1,
                             sizeof(*timeline->happenings)) == 0);
        for (; at > 0 && timeline->happenings[at - 1].at_ns <= happening.at_ns; at--)
                timeline->happenings[at] = timeline->happenings[at - 1];
        timeline->happenings[at] = happening;
        timeline->n++;
}

int64_t timeline_next(const struct timeline *timeline) {
        return timeline->n > 0 ? timeline->happenings[timeline->n - 1].at_ns : INT64_MAX;
}

struct timeline_event timeline_take(struct timeline *timeline) {
        ASSERT(timeline->n > 0);
        return timeline->happenings[--timeline->n];
}
