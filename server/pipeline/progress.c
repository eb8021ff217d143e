/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/progress.h"

#include "pipeline/internal.h"

static bool is_in_hand(const struct daemon *daemon) {
        if (daemon->is_storing)
                return true;
        return !daemon_is_idle(daemon) && daemon->side != BROKER_SIDE_UNKNOWN &&
               daemon->outlet.has_room(daemon->outlet.userdata);
}

bool progress_look(struct progress *progress, const struct daemon *daemon) {
        struct progress before = *progress;

        *progress = (struct progress){ .n_done = daemon->n_done, .was_in_hand = is_in_hand(daemon) };
        return !before.was_in_hand || !progress->was_in_hand || progress->n_done != before.n_done;
}
