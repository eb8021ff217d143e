/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

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

/*
 * The work in flight. Must be the first member of the userdata of a transport with
 * stub_run_worker().
 */
struct stub_worker {
        void (*work)(void *argument); /* NULL: none */
        void *argument;
};

static inline int stub_run_worker(void *userdata, void (*work)(void *argument), void *argument) {
        struct stub_worker *worker = userdata;

        *worker = (struct stub_worker){ work, argument };
        return 0;
}

/* Run the work in flight, and the work that follows it. Call after each call of the pipeline. */
static inline void stub_finish_work(struct stub_worker *worker, struct pipeline *pipeline, struct now now) {
        while (worker->work) {
                worker->work(worker->argument);
                worker->work = NULL;
                pipeline_work_done(pipeline, 0, now);
        }
}

static inline void stub_serving(void *userdata, enum broker_kind broker_kind) {
        (void)userdata;
        (void)broker_kind;
}
