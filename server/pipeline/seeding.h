/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "exports/export_reader.h"
#include "pipeline/pipeline.h"

/*
 * Set the keys of a seed (exports/export_reader.h): the initial content of a store. The SETs have
 * no sender.
 */

/*
 * Set one key in the engine, with its fencing token and the time until its deadline. The
 * entry gets a new version. Returns:
 *
 *     OUTCOME_DONE                 set
 *     OUTCOME_CONDITION_NOT_MET    the condition is SET_IF_ABSENT and the key exists
 *     OUTCOME_NOTHING              the deadline of the key has passed
 *     other                        an error
 */
enum outcome seeding_set(struct engine *engine, const struct exported_key *exported,
                         enum set_condition condition, struct now now, struct effects *effects);

/* Numbers of keys: set, exist already, deadline has passed. */
struct seed_counts {
        uint64_t n_set, n_existing, n_expired;
};

#define SEEDING_CONTINUES 1

/*
 * Set keys of the seed with seeding_set(), add their changes to the batch and add to the counts, until
 * the batch is full; at least one key. Returns 0 at the end of the seed, SEEDING_CONTINUES,
 * -ENOMEM, or -EBADMSG with the cause in reader->fault. After an error, some of the keys are set: undo
 * the batch, or free the pipeline.
 */
int seeding_set_some(struct pipeline *pipeline, struct export_reader *reader, enum set_condition condition,
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
