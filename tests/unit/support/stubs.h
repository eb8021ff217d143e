/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/* Callbacks of a pipeline for tests of something else: there is always room, and every commit is done at once. */

static inline bool stub_has_room(void *userdata) {
        (void)userdata;
        return true;
}

static inline int stub_run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        (void)userdata;
        work(argument);
        return 1;
}

static inline void stub_serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}
