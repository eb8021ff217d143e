/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* Callbacks for a pipeline whose surroundings do not matter: there is always room, and every commit is done at once. */

static inline bool idle_has_room(void *userdata) {
        (void)userdata;
        return true;
}

static inline int idle_run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        (void)userdata;
        work(argument);
        return 1;
}

static inline void idle_serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}
