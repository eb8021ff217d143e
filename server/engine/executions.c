/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/executions.h"

_Static_assert(EXECUTIONS_PLACES >= COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX,
               "there is a place for each record without an end");

const struct executed_request *executions_find(const struct executions *executions, uint64_t number) {
        const struct executed_request *present = &executions->places[executions_place(number)];

        return present->number == number ? present : NULL;
}

struct execution_row executions_put(struct executions *executions, struct executed_request execution) {
        struct executed_request *place = &executions->places[executions_place(execution.number)];
        struct execution_row row = { .before = *place, .after = execution };

        *place = execution;
        return row;
}

void executions_undo(struct executions *executions, const struct execution_row *row) {
        executions->places[executions_place(row->after.number)] = row->before;
}
