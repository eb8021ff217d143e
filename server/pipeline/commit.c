/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a batch. The batch is open while messages are executed in it. It is then committed,
 * and then published while the transport has room. Only an open batch may grow, so no request is
 * executed on state that may still be rolled back.
 */

#include <errno.h>

#include "pipeline/internal.h"

/* A commit that takes longer than this is stalled. */
#define COMMIT_STALLED_NS INT64_C(100000000)

/* While commits fail, every n-th call of pipeline_check_storage() tries a commit. */
#define CHECKS_PER_RETRY 3

/* Call once per batch, when its commit has ended. */
static void count_replies(struct pipeline *pipeline) {
        struct counters *counters = &pipeline->counters;

        for (size_t i = 0; i < pipeline->batch.n_replies; i++) {
                const struct pending_reply *pending = &pipeline->batch.replies[i];

                if (pending->verb == VERB_UNKNOWN)
                        continue;
                counters->n_replies[pending->verb][pending->reply.outcome]++;
                counters->n_repeated += pending->reply.execution == EXECUTION_REPEATED;
                counters->n_insertions += pending->reply.execution == EXECUTION_INSERTION;
        }
}

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
        struct commit_error cause = commit_error(error);

        if (error == -ESTALE)
                end_process(pipeline, "it is unknown whether the last commit is stored");
        pipeline->commit.has_failed = true;
        pipeline->counters.n_failed_commits++;
        log_limited_fields(
                &pipeline->storage_limit, LOG_ERROR, cause.text,
                (struct log_field[]){ LOG_FIELD_TEXT("error", slice_from_string(strerror(-error))),
                                      LOG_FIELD_NUMBER("rolled_back_rows", pipeline->batch.effects.n_rows),
                                      { 0 } });
        if (state_undo(pipeline->state, &pipeline->batch.effects) < 0)
                end_process(pipeline, "memory is too short to roll a batch back");
        batch_fail(&pipeline->batch, cause.outcome);
        pipeline->next_tick_ns = now.mono_ns + TICK_RETRY_NS;
}

static size_t n_changes(const struct change_set *change_set) {
        return change_set->n_entries + change_set->n_registrations + change_set->n_replies +
               change_set->n_forgotten;
}

static void record_success(struct pipeline *pipeline, struct now now) {
        struct commit_state *commit = &pipeline->commit;
        struct counters *counters = &pipeline->counters;

        if (commit->has_failed) /* limited: while the disk is almost full, small commits succeed and large ones fail */
                log_limited(&pipeline->storage_limit, LOG_INFO, "commits succeed again");
        commit->has_failed = false;
        commit->duration_ns = now.mono_ns - commit->start_ns;
        counters->n_commits++;
        counters->n_rows += n_changes(&commit->change_set);
        histogram_add(&counters->latencies[STAGE_COMMIT], commit->duration_ns);
}

/*
 * Return true if a reply has a version above the clock of the last commit. KEYNOTIFY replies with
 * the present HLC, even if it changes no row. Commit such a batch before the reply: otherwise,
 * after a crash, the HLC could be behind a version that a client has.
 */
static bool has_version_above_clock(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->batch;

        for (size_t i = 0; i < batch->n_replies; i++) {
                const struct reply *reply = &batch->replies[i].reply;

                if (reply->has_version && version_compare(reply->version, pipeline->state->header.clock) > 0)
                        return true;
        }
        return false;
}

static void update_acknowledged_key_states(struct pipeline *pipeline) {
        if (pipeline->n_acknowledged >= pipeline->published_n_sent)
                pipeline->acknowledged_key_states = pipeline->published_key_states;
}

/*
 * Copy key_states to published_key_states. Call when all replies are published: when n_acknowledged
 * reaches the present n_sent, the broker has acknowledged all these replies. Do nothing while a
 * message waits: its sequence number is in key_states already, but it has no reply yet. Do nothing
 * while the broker has not acknowledged the messages of the previous copy.
 */
static void update_published_key_states(struct pipeline *pipeline) {
        update_acknowledged_key_states(pipeline);
        if (pipeline->n_acknowledged < pipeline->published_n_sent || pipeline_n_waiting_bytes(pipeline) > 0)
                return;

        pipeline->published_key_states = pipeline->key_states;
        pipeline->published_n_sent = pipeline->n_sent;
}

/* Runs on a worker thread. */
static void run_commit(void *argument) {
        struct pipeline *pipeline = argument;

        pipeline->commit.result = storage_commit(pipeline->storage, &pipeline->commit.change_set);
}

/* Make the change set of the batch. Returns 0 or -ENOMEM. */
static int make_change_set(struct pipeline *pipeline, struct now now) {
        update_acknowledged_key_states(pipeline);
        pipeline->state->header.key_states = pipeline->acknowledged_key_states;
        return state_change_set(pipeline->state, &pipeline->batch.effects, now,
                                &pipeline->commit.change_set);
}

/*
 * Begin to commit the batch. Returns 0; -ENOMEM; or -EIO if the commit cannot begin.
 * pipeline_work_done() reports its end.
 */
static int begin_commit(struct pipeline *pipeline, struct now now) {
        int r;

        r = make_change_set(pipeline, now);
        if (r < 0)
                return r;

        pipeline->commit.start_ns = now.mono_ns;
        if (pipeline->transport.run_worker(pipeline->transport.userdata, run_commit, pipeline) < 0)
                return -EIO;

        pipeline->commit.is_in_flight = true;
        return 0;
}

/*
 * Stage the batch's notifications. Returns -ENOMEM if memory is short and the storage stores the
 * batch: a change must not become durable without its notifications. If the storage stores nothing,
 * the notifications are dropped and the batch takes effect: undoing it may need more memory.
 */
static int stage_notifications(struct pipeline *pipeline) {
        struct batch *batch = &pipeline->batch;
        int r;

        batch->sequence_before = pipeline->state->notifications.last_sequence;
        if (batch->effects.n_notifications == 0)
                return 0;

        r = state_stage(pipeline->state, &batch->effects);
        if (r == 0 || pipeline->storage)
                return r;

        for (size_t i = 0; i < batch->effects.n_notifications; i++)
                pipeline_count_out_of_memory(pipeline);
        return 0;
}

/* The commit has ended: the batch can be published. change_set NULL: nothing was stored. */
static void end_commit(struct pipeline *pipeline, const struct change_set *change_set, int result,
                       struct now now) {
        pipeline->n_done++;
        pipeline->commit.is_in_flight = false;
        pipeline->batch.is_publishable = true;
        if (result < 0)
                fail_batch(pipeline, result, now);
        else
                state_commit(pipeline->state, change_set);
        count_replies(pipeline);
}

/* Commit the open batch if necessary. Returns false if the commit has not ended yet. */
static bool commit(struct pipeline *pipeline, struct now now) {
        const struct effects *effects = &pipeline->batch.effects;
        bool is_needed =
                pipeline->storage && (effects->n_rows > 0 || effects->n_notifications > 0 ||
                                      pipeline->commit.is_requested || has_version_above_clock(pipeline));
        int r;

        pipeline->commit.is_requested = false;
        r = stage_notifications(pipeline);
        if (r == 0 && is_needed) {
                r = begin_commit(pipeline, now);
                if (r == 0)
                        return false;
        }
        end_commit(pipeline, NULL, r, now);
        return true;
}

int pipeline_commit_now(struct pipeline *pipeline, struct now now) {
        int r;

        r = state_stage(pipeline->state, &pipeline->batch.effects);
        if (r < 0)
                return r;
        if (!pipeline->storage) {
                state_commit(pipeline->state, NULL);
                return 0;
        }

        r = make_change_set(pipeline, now);
        if (r == 0)
                r = storage_commit(pipeline->storage, &pipeline->commit.change_set);
        if (r == -ESTALE)
                end_process(pipeline, "it is unknown whether the last commit is stored");
        if (r == 0)
                state_commit(pipeline->state, &pipeline->commit.change_set);
        return r;
}

/*
 * A batch without effects and replies must end too, if messages were executed in it: they count
 * towards its limits, so a full batch executes nothing until it has ended.
 */
static bool must_end_batch(const struct pipeline *pipeline) {
        return pipeline->batch.n_messages > 0 || !batch_is_empty(&pipeline->batch) ||
               (pipeline->state->notifications.n_pending > 0 && notifications_are_waiting(pipeline));
}

void pipeline_end_batch(struct pipeline *pipeline, struct now now) {
        bool has_executed = false;

        if (pipeline->execution_start_ns < now.mono_ns)
                pipeline->execution_start_ns = now.mono_ns;
        do {
                if (pipeline->commit.is_in_flight ||
                    (!pipeline->batch.is_publishable && !commit(pipeline, now)))
                        return;
                pipeline->is_publishing = !publish_batch(pipeline, now);
                pipeline_charge_quantum(pipeline);
                if (pipeline->is_publishing)
                        return;

                if (pipeline->storage)
                        update_published_key_states(pipeline);
                if (pipeline->is_policy_new)
                        pipeline_apply_policy(pipeline, now);
                if (pipeline->hello.state == HELLO_PENDING)
                        broker_identify(pipeline, now);
                if (!has_executed && pipeline->inbox.n_bytes > 0)
                        pipeline_execute_waiting(pipeline, now);
                has_executed = true;
        } while (must_end_batch(pipeline));
}

void pipeline_flush(struct pipeline *pipeline, struct now now) {
        pipeline_end_batch(pipeline, now);
        pipeline->quantum_work_ns = 0;
}

/* Most wake-ups bring only acknowledgements: then nothing is committed or published. */
void pipeline_wakeup_ended(struct pipeline *pipeline, struct now now) {
        if (must_end_batch(pipeline) || !inbox_is_empty(&pipeline->inbox) || pipeline->commit.is_requested ||
            pipeline->hello.state == HELLO_PENDING)
                pipeline_end_batch(pipeline, now);
        pipeline->quantum_work_ns = 0;
}

void pipeline_work_done(struct pipeline *pipeline, int error, struct now now) {
        int result = error < 0 ? error : pipeline->commit.result;

        if (result == 0)
                record_success(pipeline, now);
        end_commit(pipeline, &pipeline->commit.change_set, result, now);
        pipeline_flush(pipeline, now);
}

/*
 * A failed commit was undone: registrations that had ended are restored, and messages to the plugin
 * were dropped. When commits succeed again, ask the plugin which connections it tracks. Ask at most
 * once per check: while the disk is almost full, commits can fail and succeed in turn.
 */
static bool must_repeat_hello(const struct pipeline *pipeline) {
        return engine_is_tracking_uncertain(pipeline->state->engine) && !pipeline->commit.has_failed &&
               pipeline->broker_kind == BROKER_WITH_PLUGIN;
}

/* Begin no commit while WELCOME is awaited: WELCOME is processed only while the batch is open. */
void pipeline_check_storage(struct pipeline *pipeline, struct now now) {
        bool is_needed;

        if (!pipeline->storage || pipeline->commit.is_in_flight)
                return;

        if (must_repeat_hello(pipeline)) {
                pipeline->hello.state = HELLO_PENDING;
                pipeline_flush(pipeline, now);
                return;
        }

        is_needed = state_needs_commit(pipeline->state, now);
        if (pipeline->commit.has_failed && ++pipeline->commit.n_failing_checks % CHECKS_PER_RETRY == 0)
                is_needed = true;
        if (!is_needed || pipeline->is_publishing || pipeline->hello.state != HELLO_NONE)
                return;

        pipeline->commit.is_requested = true;
        pipeline_flush(pipeline, now);
}

bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now) {
        return pipeline->commit.is_in_flight && now.mono_ns - pipeline->commit.start_ns > COMMIT_STALLED_NS;
}
