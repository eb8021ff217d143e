/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/progress.h"

#include "pipeline/internal.h"

static bool is_in_hand(const struct pipeline *pipeline) {
        if (pipeline->is_storing)
                return true;
        return !pipeline_is_idle(pipeline) && pipeline->broker_kind != BROKER_UNKNOWN &&
               pipeline->transport.has_room(pipeline->transport.userdata);
}

bool progress_look(struct progress *progress, const struct pipeline *pipeline) {
        struct progress before = *progress;

        *progress = (struct progress){ .n_done = pipeline->n_done, .was_in_hand = is_in_hand(pipeline) };
        return !before.was_in_hand || !progress->was_in_hand || progress->n_done != before.n_done;
}
