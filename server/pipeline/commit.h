/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/log.h"
#include "pipeline/pipeline.h"

/*
 * The commit of a batch: the second state of batch.h. The worker thread stores the change set, and
 * pipeline_committed() gets the result. Then the changes take effect in memory, or are undone and each
 * reply becomes an error.
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

/* Return true if the batch must end: is_commit_required, batch_is_full(), or at a limit of the storage. */
bool commit_is_due(const struct pipeline *pipeline);

/*
 * End the open batch. It is committed, or is publishing at once if nothing has to be stored before its
 * replies. Only pipeline_advance() calls this function.
 */
void commit_begin(struct pipeline *pipeline, struct now now);

/*
 * End the open batch and commit it on this thread. Returns 0, -ENOMEM, or the error of storage_commit().
 * After it, also after an error, the batch is publishing: call batch_reset() if it has no replies.
 */
int commit_synchronously(struct pipeline *pipeline, struct now now);
