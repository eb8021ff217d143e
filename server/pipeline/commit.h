/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "pipeline/pipeline.h"

/*
 * The commit of a batch: between commit_begin() and pipeline_committed(), a worker thread stores the change
 * set; for keys of a seed, seeding_run() stores it.
 * The engine has changed already, so a failed commit rolls the batch back, and each reply becomes an
 * error. Both functions set the state of the batch (batch.h).
 */
struct batch_commit {
        struct change_set change_set; /* argument of storage_commit() */
        int64_t start_ns;             /* when the last commit started; 0: no commit has started */
        /*
         * Result of the last commit, or of storage_lead() before the first one: 0 or an error; -ENOSPC also
         * for STORAGE_FULL.
         */
        int error;
        struct log_limit log_limit;
};

/*
 * The open batch ends: what it has done is to be stored before its replies are published. Returns
 *
 *       1  it must be stored: then commit its change set, and call pipeline_committed() with the result
 *       0  it need not be stored
 * -ENOMEM  it was rolled back, and its replies are errors
 */
int commit_begin(struct pipeline *pipeline, struct now now);
