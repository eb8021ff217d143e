/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/seed.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "codec/encoder.h"
#include "pipeline/internal.h"
#include "records/seed.h"

static int ask(struct engine *engine, const struct request *request, struct now now, struct effects *effects,
               enum outcome *ret_outcome) {
        struct event event = { .type = EVENT_REQUEST, .request = request };
        struct reply reply;
        int r;

        r = engine_step(engine, &event, now, effects);
        if (r < 0)
                return r;

        reply = effects_take_reply(effects);
        *ret_outcome = reply.outcome;
        reply_deinit(&reply);
        return 0;
}

int seeding_set(struct engine *engine, const struct record *record, enum set_condition condition,
                struct now now, struct effects *effects, enum outcome *ret_outcome) {
        struct request get = { .verb = VERB_GET, .key = buf_slice(&record->key), .is_own = true };
        struct request set = {
                .verb = VERB_SET, .key = get.key, .value = SLICE_LITERAL(""), .is_own = true
        };
        enum outcome outcome;
        int r;

        if (record->value.length > 0)
                set.value = buf_slice(&record->value);
        if (record->deadline_ms != RECORD_NO_DEADLINE) {
                if (record->deadline_ms <= now.wall_ms) {
                        *ret_outcome = OUTCOME_NOTHING;
                        return 0;
                }
                set.has_px = true;
                set.px_ms = record->deadline_ms - now.wall_ms;
        }
        if (condition == SET_IF_ABSENT) {
                /* first, as a key that is there may have a token, which is checked before the condition */
                r = ask(engine, &get, now, effects, &outcome);
                if (r < 0)
                        return r;
                if (outcome == OUTCOME_VALUE) {
                        *ret_outcome = OUTCOME_CONDITION_NOT_MET;
                        return 0;
                }
        }

        set.has_fence = hlc_parse(buf_slice(&record->token), &set.fence) == 0;
        return ask(engine, &set, now, effects, ret_outcome);
}

struct counts {
        uint64_t n_set, n_stored, n_expired;
};

static int set_all(struct engine *engine, struct seed *seed, struct now now, struct effects *effects,
                   struct counts *counts) {
        CLEANUP(record_deinit) struct record record = { 0 };
        enum outcome outcome;
        int r;

        while ((r = seed_next(seed, &record)) > 0) {
                r = seeding_set(engine, &record, SET_IF_ABSENT, now, effects, &outcome);
                if (r < 0)
                        return r;

                switch (outcome) {
                case OUTCOME_DONE:
                        counts->n_set++;
                        break;
                case OUTCOME_CONDITION_NOT_MET:
                        counts->n_stored++;
                        break;
                case OUTCOME_NOTHING:
                        counts->n_expired++;
                        break;
                default:
                        return seed_refuse(seed, encoder_error_text(outcome));
                }
        }
        return r;
}

static int store(struct pipeline *pipeline, const struct effects *effects, struct now now) {
        struct storage_batch batch = storage_batch_from(pipeline->engine, effects, now);

        batch.persistence = pipeline_persistence(pipeline);
        return batch.n_rows > 0 ? storage_commit(pipeline->storage, &batch) : 0;
}

int seeding_run(struct pipeline *pipeline, const char *file, struct now now) {
        CLEANUP(effects_deinit) struct effects effects = { 0 };
        CLEANUP(seed_deinit) struct seed seed;
        struct counts counts = { 0 };
        int r;

        r = seed_open(&seed, file);
        if (r == 0)
                r = set_all(pipeline->engine, &seed, now, &effects, &counts);
        if (r < 0) {
                log_error("cannot start: --seed %s", seed.fault[0] ? seed.fault : "out of memory");
                return r == -ENOMEM ? r : -EBADMSG;
        }

        if (effects.n_notifications > 0) /* they are not sent: the clients register again instead */
                pipeline->lost_persistence = PERSISTENCE_UNKNOWN;
        r = store(pipeline, &effects, now);
        if (r < 0) {
                log_error("cannot start: the keys of --seed %s could not be stored: %s",
                          LOG_TEXT(slice_from_string(file)), strerror(-r));
                return r;
        }

        log_info("seeded from %s: %" PRIu64 " set, %" PRIu64 " there already, %" PRIu64
                 " left out whose deadline has passed",
                 LOG_TEXT(slice_from_string(file)), counts.n_set, counts.n_stored, counts.n_expired);
        return 0;
}
