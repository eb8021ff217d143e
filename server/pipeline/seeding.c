/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/seeding.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "codec/encoder.h"
#include "pipeline/internal.h"

/* Execute one request without a reply. */
static enum outcome step_request(struct engine *engine, const struct request *request, struct now now,
                                 struct effects *effects) {
        struct reply reply;
        enum outcome outcome;

        engine_request(engine, request, &reply, now, effects);
        outcome = reply.result.outcome;
        reply_deinit(&reply);
        return outcome;
}

enum outcome seeding_set(struct engine *engine, const struct exported_key *exported,
                         enum set_condition condition, struct now now, struct effects *effects) {
        /* is_own: no policy applies */
        struct request get = { .verb = VERB_GET, .key = buf_slice(&exported->key), .is_own = true };
        struct request set = {
                .verb = VERB_SET, .key = get.key, .value = SLICE_LITERAL(""), .is_own = true
        };

        if (exported->value.length > 0)
                set.value = buf_slice(&exported->value);
        if (exported->deadline_ms != EXPORTED_KEY_NO_DEADLINE) {
                if (exported->deadline_ms <= now.wall_ms)
                        return OUTCOME_NOTHING;
                set.has_px = true;
                set.px_ms = exported->deadline_ms - now.wall_ms;
        }
        /* Check first: SET checks the fencing token of an existing key before the condition. */
        if (condition == SET_IF_ABSENT && step_request(engine, &get, now, effects) == OUTCOME_VALUE)
                return OUTCOME_CONDITION_NOT_MET;

        set.has_fence = hlc_parse(buf_slice(&exported->fence), &set.fence) == 0;
        return step_request(engine, &set, now, effects);
}

int seeding_set_some(struct pipeline *pipeline, struct export_reader *reader, enum set_condition condition,
                     struct now now, struct seed_counts *counts) {
        CLEANUP(exported_key_deinit) struct exported_key exported = { 0 };
        int r;

        while ((r = export_reader_next(reader, &exported)) > 0) {
                enum outcome outcome = seeding_set(pipeline->state->engine, &exported, condition, now,
                                                   &pipeline->batch.effects);

                switch (outcome) {
                case OUTCOME_DONE:
                        counts->n_set++;
                        break;
                case OUTCOME_CONDITION_NOT_MET:
                        counts->n_existing++;
                        break;
                case OUTCOME_NOTHING:
                        counts->n_expired++;
                        break;
                case OUTCOME_OUT_OF_MEMORY:
                        return -ENOMEM;
                default:
                        return export_reader_reject(reader, encoder_error_text(outcome));
                }
                if (pipeline_must_commit(pipeline))
                        return SEEDING_CONTINUES;
        }
        return r;
}

/* Returns 0, or the error: then the batch was rolled back. */
static int commit_batch(struct pipeline *pipeline, struct now now) {
        int r;

        work_clock_resume(&pipeline->clock, now);
        r = commit_begin(pipeline, now);
        if (r > 0) {
                r = storage_commit(pipeline->storage, &pipeline->commit.change_set);
                pipeline_committed(pipeline, r, now);
        }
        batch_reset(&pipeline->batch);
        return r < 0 ? r : 0;
}

int seeding_run(struct pipeline *pipeline, const char *file, struct now now) {
        CLEANUP(export_reader_deinit) struct export_reader reader;
        struct seed_counts counts = { 0 };
        int set, r;

        set = export_reader_open(&reader, file);
        do {
                if (set >= 0)
                        set = seeding_set_some(pipeline, &reader, SET_IF_ABSENT, now, &counts);
                if (set < 0) {
                        log_error("cannot start: --seed %s",
                                  reader.fault[0] ? reader.fault : "out of memory");
                        return set == -ENOMEM ? set : -EBADMSG;
                }

                r = commit_batch(pipeline, now);
                if (r < 0) {
                        log_error("cannot start: the keys of --seed %s could not be stored: %s",
                                  LOG_TEXT(slice_from_string(file)), strerror(-r));
                        return r;
                }
        } while (set == SEEDING_CONTINUES);

        log_info("seeded from %s: set=%" PRIu64 " existing=%" PRIu64 " expired=%" PRIu64,
                 LOG_TEXT(slice_from_string(file)), counts.n_set, counts.n_existing, counts.n_expired);
        return 0;
}
