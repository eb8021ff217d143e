/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "pipeline/pipeline.h"
#include "records/record.h"

/* Keys that are set on nobody's behalf: what a store begins with. */

/*
 * Sets one key through the engine, as a SET with what is left until the record's deadline, and its token; its version is a
 * new one. No reply is added to the effects. ret_outcome: OUTCOME_DONE; OUTCOME_CONDITION_NOT_MET where the condition is
 * SET_IF_ABSENT and the key is there; OUTCOME_NOTHING where its deadline has passed; or an error. Returns 0 or -ENOMEM.
 */
int seeding_set(struct engine *engine, const struct record *record, enum set_condition condition,
                struct now now, struct effects *effects, enum outcome *ret_outcome);

/*
 * Before the first message: sets what is in the file and not in the pipeline's store yet, and stores it in one batch; of two
 * lines for one key the first counts. Returns 0; -EBADMSG where the file cannot be read or a key of it cannot be set;
 * -ENOMEM; or what the storage failed with. Then nothing is stored, and the pipeline is not to be used: it may hold a part.
 * What was done or what is wrong has been logged.
 */
int seeding_run(struct pipeline *pipeline, const char *file, struct now now);
