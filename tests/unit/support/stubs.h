/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/internal.h"

/* Callbacks of a pipeline for tests of something else: there is always room. */

static inline bool stub_has_room(void *userdata) {
        (void)userdata;
        return true;
}

/* The work takes no time. */
static inline int64_t stub_clock_ns(void *userdata) {
        (void)userdata;
        return 0;
}

/* Must be the first member of the userdata of callbacks with stub_start_commit(). */
struct stub_worker {
        const struct change_set *change_set;
        bool is_committing;
};

static inline void stub_start_commit(void *userdata, const struct change_set *change_set) {
        *(struct stub_worker *)userdata = (struct stub_worker){ change_set, true };
}

/* End the commit in flight, and the commits that follow it. Call after each call of the pipeline. */
static inline void stub_finish_commits(struct stub_worker *worker, struct pipeline *pipeline,
                                       struct now now) {
        while (worker->is_committing) {
                worker->is_committing = false;
                pipeline_committed(pipeline, storage_commit(pipeline->storage, worker->change_set), now);
                pipeline_advance(pipeline, now);
        }
}

static inline void stub_serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}
