/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/executions.h"

#include <errno.h>

#define PLACES_PER_SLOT (EXECUTIONS_PLACES / EXECUTIONS_SLOTS)

_Static_assert(EXECUTIONS_SLOTS >= COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX,
               "there is a slot for each record without an end");

static uint32_t first_place(struct request_id id) {
        return (uint32_t)(id.number % EXECUTIONS_SLOTS) * PLACES_PER_SLOT;
}

const struct executed_request *executions_find(const struct executions *executions, struct request_id id) {
        const struct executed_request *places = &executions->places[first_place(id)];

        for (size_t i = 0; i < PLACES_PER_SLOT; i++)
                if (places[i].id.number == id.number && places[i].id.broker_run == id.broker_run)
                        return &places[i];
        return NULL;
}

/* Return the place of an earlier number of the same run; else one that is free, or the oldest. */
static uint32_t choose_place(const struct executions *executions, struct request_id id) {
        uint32_t first = first_place(id), oldest = first;

        for (uint32_t i = first; i < first + PLACES_PER_SLOT; i++) {
                const struct executed_request *present = &executions->places[i];

                if (present->id.number > 0 && present->id.broker_run == id.broker_run)
                        return i;
                if (present->order < executions->places[oldest].order)
                        oldest = i;
        }
        return oldest;
}

struct execution_row executions_add(struct executions *executions, struct request_id id,
                                    struct result result) {
        uint32_t place = choose_place(executions, id);
        struct execution_row row = {
                .before = executions->places[place],
                .after = { .id = id, .order = ++executions->last_order, .place = place, .result = result },
        };

        executions->places[place] = row.after;
        return row;
}

void executions_undo(struct executions *executions, const struct execution_row *row) {
        executions->places[row->after.place] = row->before;
}

int executions_put(struct executions *executions, const struct executed_request *execution) {
        uint32_t first = first_place(execution->id), place = execution->place;

        if (execution->id.number == 0 || place < first || place >= first + PLACES_PER_SLOT)
                return -EBADMSG;

        executions->places[place] = *execution;
        if (executions->last_order < execution->order)
                executions->last_order = execution->order;
        return 0;
}
