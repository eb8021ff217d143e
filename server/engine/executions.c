/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/executions.h"

_Static_assert(EXECUTIONS_PLACES >= COMPANION_FRAMES_MAX * COMPANION_FRAME_RECORDS_MAX,
               "there is a place for each record without an end");

const struct executed_request *executions_find(const struct executions *executions, uint64_t number) {
        const struct executed_request *present = &executions->places[executions_place(number)];

        return present->number == number ? present : NULL;
}

struct executed_request executions_put(struct executions *executions, struct executed_request execution) {
        struct executed_request *place = &executions->places[executions_place(execution.number)];
        struct executed_request before = *place;

        *place = execution;
        return before;
}
