/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "pipeline/pipeline.h"
#include "records/seed.h"

/*
 * Set the keys of a seed file (records/seed.h): the initial content of a store. The SETs have no
 * sender.
 */

/*
 * Set one key in the engine, with the record's fencing token and the time until its deadline. The
 * entry gets a new version. Returns:
 *
 *     OUTCOME_DONE                 set
 *     OUTCOME_CONDITION_NOT_MET    the condition is SET_IF_ABSENT and the key exists
 *     OUTCOME_NOTHING              the record's deadline has passed
 *     other                        an error
 */
enum outcome seeding_set(struct engine *engine, const struct key_record *record,
                         enum set_condition condition, struct now now, struct effects *effects);

/* Numbers of records: key set, key exists already, deadline has passed. */
struct seed_counts {
        uint64_t n_set, n_existing, n_expired;
};

#define SEEDING_CONTINUES 1

/*
 * Set keys of the seed with seeding_set(), add their rows to the batch and add to the counts, until
 * the batch is full; at least one record. Returns 0 at the end of the seed, SEEDING_CONTINUES,
 * -ENOMEM, or -EBADMSG with the cause in seed->fault. After an error, some of the keys are set: undo
 * the batch, or free the pipeline.
 */
int seeding_set_some(struct pipeline *pipeline, struct seed *seed, enum set_condition condition,
                     struct now now, struct seed_counts *counts);

/*
 * Set all keys of the file that the store does not have, and commit them in batches. Their
 * notifications are published when the broker kind is known. Of two lines with the same key, the
 * first counts. Call before the first message. Logs the result, or the cause of an error. Returns:
 *
 *     0           done
 *     -EBADMSG    the file cannot be read, or one of its keys cannot be set
 *     -ENOMEM     out of memory
 *     other       the error of storage_commit()
 *
 * After an error some of the keys may be stored; the next call sets the others. Free the pipeline.
 */
int seeding_run(struct pipeline *pipeline, const char *file, struct now now);
