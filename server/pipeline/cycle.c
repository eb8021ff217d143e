/* SPDX-License-Identifier: Apache-2.0 */

/* The cycle of a batch: see pipeline/internal.h. */

#include <errno.h>

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"

/* A commit that takes longer than this is stalled. */
#define COMMIT_STALLED_NS INT64_C(100000000)

/* While commits fail, every n-th call of pipeline_check_storage() tries a commit. */
#define CHECKS_PER_RETRY 3

/* 1. The batch */

int cycle_step(struct pipeline *pipeline, const struct event *event, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        int r;

        r = engine_step(pipeline->state->engine, event, now, &batch->effects);
        batch_add_cost(batch);
        return r;
}

bool cycle_batch_is_full(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->cycle.batch;
        struct storage_limits limits;

        /* Beside a request that adds something, one that only removes would fail, too. */
        if (batch_is_full(batch) || (pipeline->cycle.commit_error == -ENOSPC && batch->n_messages > 0))
                return true;
        if (!pipeline->storage)
                return false;

        limits = storage_limits(pipeline->storage);
        return batch->effects.n_rows + batch->effects.n_executions + batch->effects.n_changes >=
                       limits.n_changes ||
               batch->n_bytes >= limits.n_bytes;
}

/* Call once per batch, when its commit has ended. */
static void count_replies(struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->cycle.batch;
        struct counters *counters = &pipeline->counters;

        for (size_t i = 0; i < batch->n_replies; i++) {
                const struct pending_reply *pending = &batch->replies[i];

                if (pending->verb == VERB_UNKNOWN)
                        continue;
                counters->n_replies[pending->verb][pending->reply.result.outcome]++;
                counters->n_repeated += pending->reply.execution == EXECUTION_REPEATED;
                counters->n_insertions += pending->reply.execution == EXECUTION_INSERTION;
        }
}

/* 2. The end of a commit */

/* How a failed commit is reported to the clients and in the log. */
struct commit_error {
        enum outcome outcome;
        const char *text;
};

static struct commit_error commit_error(int error) {
        switch (error) {
        case -ENOMEM:
                return (struct commit_error){
                        OUTCOME_OUT_OF_MEMORY,
                        "commit failed: give the process more memory, or lower max-bytes"
                };
        case -ENOSPC:
                return (struct commit_error){
                        OUTCOME_DISK_FULL, "commit failed: free space on the disk of the data directory, or "
                                           "raise the quota of its user"
                };
        default:
                return (struct commit_error){
                        OUTCOME_STORAGE_FAILED,
                        "commit failed: check the disk of the data directory, and that it "
                        "is not mounted read-only"
                };
        }
}

/*
 * Memory and storage may differ. A reply would promise what the next start may not find, and a
 * later commit would build on it.
 */
__attribute__((noreturn)) static void end_process(const struct pipeline *pipeline, const char *cause) {
        log_error("%s: the process ends, and the next start loads the stored state", cause);
        pipeline->callbacks.fatal(pipeline->callbacks.userdata);
}

/* Roll the batch back in memory, and reply to each of its requests with an error. */
static void fail_batch(struct pipeline *pipeline, int error, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        struct commit_error cause = commit_error(error);

        if (error == -ESTALE)
                end_process(pipeline, "it is unknown whether the last commit is stored");
        pipeline->cycle.commit_error = error;
        pipeline->counters.n_failed_commits++;
        log_limited_fields(
                &pipeline->storage_limit, LOG_ERROR, cause.text,
                (struct log_field[]){ LOG_FIELD_TEXT("error", slice_from_string(strerror(-error))),
                                      LOG_FIELD_NUMBER("rolled_back_rows", batch->effects.n_rows),
                                      { 0 } });
        if (state_undo(pipeline->state, &batch->effects) < 0)
                end_process(pipeline, "memory is too short to roll a batch back");
        batch_fail(batch, cause.outcome);
        pipeline->cycle.next_tick_ns = now.mono_ns + TICK_RETRY_NS;
}

static void record_success(struct pipeline *pipeline, struct now now) {
        struct cycle *cycle = &pipeline->cycle;
        const struct change_set *change_set = &cycle->change_set;
        struct counters *counters = &pipeline->counters;

        /* limited: while the disk is almost full, small commits succeed and large ones fail */
        if (cycle->commit_error < 0 && cycle->commit_result == 0)
                log_limited(&pipeline->storage_limit, LOG_INFO, "commits succeed again");
        cycle->commit_error = cycle->commit_result == STORAGE_FULL ? -ENOSPC : 0;
        counters->n_commits++;
        counters->n_rows += change_set->n_entries + change_set->n_registrations + change_set->n_replies +
                            change_set->n_executions + change_set->n_forgotten;
        histogram_add(&counters->latencies[STAGE_COMMIT], now.mono_ns - cycle->commit_start_ns);
        quantum_set_limit(&pipeline->quantum, now.mono_ns - cycle->commit_start_ns);
}

/* The commit has ended: publish the batch. change_set NULL: nothing was stored. */
static void end_commit(struct pipeline *pipeline, const struct change_set *change_set, int result,
                       struct now now) {
        pipeline->cycle.n_done++;
        if (result < 0)
                fail_batch(pipeline, result, now);
        else
                state_commit(pipeline->state, change_set);
        count_replies(pipeline);
        pipeline->cycle.state = CYCLE_PUBLISHING;
}

void pipeline_work_done(struct pipeline *pipeline, int error, struct now now) {
        int result = error < 0 ? error : pipeline->cycle.commit_result;

        if (result >= 0)
                record_success(pipeline, now);
        end_commit(pipeline, &pipeline->cycle.change_set, result, now);
        cycle_flush(pipeline, now);
}

/* 3. The begin of a commit */

/*
 * Return true if a reply has a version above the clock of the last commit. KEYNOTIFY replies with
 * the present HLC, even if it changes no row. Commit such a batch before the reply: otherwise,
 * after a crash, the HLC could be behind a version that a client has.
 */
static bool has_version_above_clock(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->cycle.batch;

        for (size_t i = 0; i < batch->n_replies; i++) {
                const struct reply *reply = &batch->replies[i].reply;

                if (reply->result.has_version &&
                    version_compare(reply->result.version, pipeline->state->header.clock) > 0)
                        return true;
        }
        return false;
}

/* Runs on a worker thread. */
static void run_commit(void *argument) {
        struct pipeline *pipeline = argument;

        pipeline->cycle.commit_result = storage_commit(pipeline->storage, &pipeline->cycle.change_set);
}

/* Returns 0; -ENOMEM; or -EIO if the commit cannot begin. pipeline_work_done() reports its end. */
static int begin_commit(struct pipeline *pipeline, struct now now) {
        int r;

        r = state_change_set(pipeline->state, &pipeline->cycle.batch.effects, now,
                             &pipeline->cycle.change_set);
        if (r < 0)
                return r;

        pipeline->cycle.commit_start_ns = pipeline->quantum.read_ns; /* `now` is older */
        if (pipeline->transport.run_worker(pipeline->transport.userdata, run_commit, pipeline) < 0)
                return -EIO;

        pipeline->cycle.state = CYCLE_COMMITTING;
        return 0;
}

/*
 * Stage the batch's notifications. Returns -ENOMEM if memory is short and the batch is stored: a
 * change must not become durable without its notifications. Without a storage, the notifications
 * are dropped and the batch takes effect: undoing it may need more memory.
 */
static int stage_notifications(struct pipeline *pipeline) {
        struct batch *batch = &pipeline->cycle.batch;
        int r;

        batch->sequence_before = pipeline->state->notifications.last_sequence;
        if (batch->effects.n_notifications == 0)
                return 0;

        r = state_stage(pipeline->state, &batch->effects);
        if (r == 0 || pipeline->storage)
                return r;

        for (size_t i = 0; i < batch->effects.n_notifications; i++)
                drops_out_of_memory(&pipeline->drops);
        return 0;
}

/* Commit the batch if necessary, else publish it. */
static void end_batch(struct pipeline *pipeline, struct now now) {
        const struct effects *effects = &pipeline->cycle.batch.effects;
        bool is_needed = pipeline->storage &&
                         (effects->n_rows > 0 || effects->n_executions > 0 || effects->n_notifications > 0 ||
                          pipeline->cycle.must_commit || has_version_above_clock(pipeline));
        int r;

        pipeline->cycle.must_commit = false;
        r = stage_notifications(pipeline);
        if (r == 0 && is_needed)
                r = begin_commit(pipeline, now);
        if (pipeline->cycle.state == CYCLE_OPEN)
                end_commit(pipeline, NULL, r, now);
}

int cycle_commit_now(struct pipeline *pipeline, struct now now) {
        int r;

        r = state_stage(pipeline->state, &pipeline->cycle.batch.effects);
        if (r < 0)
                return r;
        if (!pipeline->storage) {
                state_commit(pipeline->state, NULL);
                return 0;
        }

        r = state_change_set(pipeline->state, &pipeline->cycle.batch.effects, now,
                             &pipeline->cycle.change_set);
        if (r == 0)
                r = storage_commit(pipeline->storage, &pipeline->cycle.change_set);
        if (r == -ESTALE)
                end_process(pipeline, "it is unknown whether the last commit is stored");
        if (r < 0)
                return r;
        state_commit(pipeline->state, &pipeline->cycle.change_set);
        return 0;
}

/* 4. The work for OPEN */

/*
 * If a broker is served, apply next_policy, if there is one. Until then no request is executed and
 * no key expires, so the former policy decides nothing.
 */
static void apply_policy(struct pipeline *pipeline, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (!pipeline->has_next_policy || !pipeline->outbox.is_open)
                return;

        pipeline->has_next_policy = false;
        policy_free(pipeline->policy);
        pipeline->policy = take_ptr(&pipeline->next_policy);
        engine_set_policy(pipeline->state->engine, pipeline->policy);
        cycle_step(pipeline, &changed, now);
}

/*
 * A batch without effects and replies must end too, if messages were executed in it: they count
 * towards its limits, so a full batch executes nothing until it has ended.
 */
static bool must_end_batch(const struct pipeline *pipeline) {
        const struct cycle *cycle = &pipeline->cycle;

        return cycle->batch.n_messages > 0 || !batch_is_empty(&cycle->batch) || cycle->must_commit ||
               outbox_is_waiting(&pipeline->outbox);
}

void cycle_charge(struct pipeline *pipeline) {
        pipeline->cycle.batch.execution_ns += quantum_charge(&pipeline->quantum);
}

/* Commit and publish the batch. Returns true if that is done: the batch is open and empty. */
static bool finish_batch(struct pipeline *pipeline, struct now now) {
        struct cycle *cycle = &pipeline->cycle;

        if (cycle->state == CYCLE_OPEN && must_end_batch(pipeline))
                end_batch(pipeline, now);
        if (cycle->state == CYCLE_PUBLISHING) {
                if (outbox_publish(&pipeline->outbox, &cycle->batch, now))
                        cycle->state = CYCLE_OPEN;
                cycle_charge(pipeline);
        }
        if (cycle->state == CYCLE_OPEN && pipeline->outbox.has_failed)
                peer_restart_later(pipeline, now);
        return cycle->state == CYCLE_OPEN;
}

void cycle_advance(struct pipeline *pipeline, struct now now) {
        quantum_resume(&pipeline->quantum, now);
        if (!finish_batch(pipeline, now))
                return;
        peer_identify(pipeline, now);
        apply_policy(pipeline, now);
        if (!finish_batch(pipeline, now))
                return;
        serve_waiting(pipeline, now);
        finish_batch(pipeline, now);
}

void cycle_flush(struct pipeline *pipeline, struct now now) {
        quantum_resume(&pipeline->quantum, now);
        finish_batch(pipeline, now);
        quantum_start(&pipeline->quantum);
        cycle_advance(pipeline, now);
        quantum_start(&pipeline->quantum);
}

void pipeline_wakeup_ended(struct pipeline *pipeline, struct now now) {
        cycle_flush(pipeline, now);
}

/* 5. Time */

/* Keys expire only while a broker is served: its kind determines how to notify the clients. */
static bool can_tick(const struct pipeline *pipeline) {
        return pipeline->outbox.is_open && pipeline->cycle.state == CYCLE_OPEN &&
               !outbox_is_full(&pipeline->outbox);
}

/*
 * Repeat small steps until no work is due, the quantum is over, or the batch is full. The next call
 * continues.
 */
static void tick_engine(struct pipeline *pipeline, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        quantum_resume(&pipeline->quantum, now);
        do {
                if (cycle_step(pipeline, &tick, now) < 0) {
                        pipeline->cycle.next_tick_ns = now.mono_ns + TICK_RETRY_NS;
                        return;
                }
                cycle_charge(pipeline);
        } while (engine_next_deadline(pipeline->state->engine) <= now.mono_ns &&
                 !cycle_batch_is_full(pipeline) && !quantum_is_over(&pipeline->quantum));
}

void pipeline_tick(struct pipeline *pipeline, struct now now) {
        peer_tick(pipeline, now);
        outbox_frames_tick(&pipeline->frames, now);
        if (pipeline->hooks)
                pipeline->hooks->tick(pipeline->hooks->userdata, now);
        if (can_tick(pipeline) && now.mono_ns >= pipeline->cycle.next_tick_ns)
                tick_engine(pipeline, now);
        cycle_flush(pipeline, now);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns) {
        return a_ns < b_ns ? a_ns : b_ns;
}

int64_t pipeline_next_deadline(const struct pipeline *pipeline) {
        const struct hooks *hooks = pipeline->hooks;
        int64_t deadline_ns = can_tick(pipeline) ? engine_next_deadline(pipeline->state->engine) : INT64_MAX;

        if (queue_first(&pipeline->queue) && serve_can_begin(pipeline))
                return 0;

        if (deadline_ns < pipeline->cycle.next_tick_ns)
                deadline_ns = pipeline->cycle.next_tick_ns;
        if (hooks)
                deadline_ns = earlier(deadline_ns, hooks->next_deadline(hooks->userdata));
        deadline_ns = earlier(deadline_ns, pipeline->frames.deadline_ns);
        return earlier(deadline_ns, pipeline->peer.deadline_ns);
}

/*
 * A failed commit was undone: registrations that had ended are restored. When commits succeed again,
 * WELCOME says which of their connections have ended. Send HELLO at most once per check: while the
 * disk is almost full, commits can fail and succeed in turn.
 */
static bool must_repeat_hello(const struct pipeline *pipeline) {
        return engine_has_restored_registrations(pipeline->state->engine) &&
               pipeline->cycle.commit_error == 0 && pipeline->peer.state == PEER_WITH_PLUGIN;
}

void pipeline_check_storage(struct pipeline *pipeline, struct now now) {
        struct cycle *cycle = &pipeline->cycle;
        bool is_needed;

        if (!pipeline->storage || cycle->state == CYCLE_COMMITTING)
                return;

        if (must_repeat_hello(pipeline)) {
                peer_restart(pipeline);
                cycle_flush(pipeline, now);
                return;
        }

        /* The first commit finds out whether the disk has room. */
        is_needed = state_needs_commit(pipeline->state, now) || cycle->commit_start_ns == 0;
        if (cycle->commit_error < 0 && ++cycle->n_failing_checks % CHECKS_PER_RETRY == 0)
                is_needed = true;
        if (!is_needed || cycle->state != CYCLE_OPEN)
                return;

        cycle->must_commit = true;
        cycle_flush(pipeline, now);
}

bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now) {
        return pipeline->cycle.state == CYCLE_COMMITTING &&
               now.mono_ns - pipeline->cycle.commit_start_ns > COMMIT_STALLED_NS;
}

bool pipeline_check_progress(struct pipeline *pipeline) {
        struct cycle *cycle = &pipeline->cycle;
        bool had_work = cycle->had_work_at_check;
        uint64_t n_done_before = cycle->n_done_at_check;

        cycle->n_done_at_check = cycle->n_done;
        if (cycle->state == CYCLE_COMMITTING)
                cycle->had_work_at_check = !storage_is_waiting(pipeline->storage);
        else
                cycle->had_work_at_check = !pipeline_is_idle(pipeline) && pipeline->outbox.is_open &&
                                           outbox_has_room(&pipeline->outbox) &&
                                           !outbox_is_full(&pipeline->outbox);
        return !had_work || !cycle->had_work_at_check || cycle->n_done != n_done_before;
}
