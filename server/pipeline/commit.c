/* SPDX-License-Identifier: Apache-2.0 */

/* How a batch ends: stored, not to be stored, or rolled back. */

#include <errno.h>

#include "pipeline/internal.h"

/* 1. The end of a commit */

/* How a failed commit is reported to the clients and in the log. */
struct commit_error {
        enum outcome outcome;
        const char *text;
};

static struct commit_error describe_commit_error(int error) {
        switch (error) {
        case -ENOMEM:
                return (struct commit_error){
                        OUTCOME_OUT_OF_MEMORY,
                        "commit failed: give the process more memory, or lower max-bytes"
                };
        case -ENOSPC:
                return (struct commit_error){
                        OUTCOME_DISK_FULL, "commit failed: free space on the disk of the data directory, or "
                                           "raise the quota of its user; in etcd, compact, defragment, or "
                                           "raise the quota"
                };
        default:
                return (struct commit_error){
                        OUTCOME_STORAGE_FAILED,
                        "commit failed: check the disk of the data directory, and that it "
                        "is not mounted read-only; or the log of etcd"
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

static void count_failed_commit(struct pipeline *pipeline, int error, struct now now) {
        pipeline->commit.error = error;
        pipeline->counters.n_failed_commits++;
        log_limited_fields(
                &pipeline->commit.log_limit, LOG_ERROR, describe_commit_error(error).text,
                (struct log_field[]){
                        LOG_FIELD_TEXT("error", slice_from_string(strerror(-error))),
                        LOG_FIELD_NUMBER("rolled_back_changes", pipeline->batch.effects.n_changes),
                        { 0 } });
        pipeline->upkeep.next_tick_ns = now.mono_ns + TICK_RETRY_NS;
}

/* Roll the batch back in memory, and reply to each of its requests with an error. */
static void roll_back_batch(struct pipeline *pipeline, int error) {
        struct batch *batch = &pipeline->batch;

        if (state_undo(pipeline->state, &batch->effects) < 0)
                end_process(pipeline, "memory is too short to roll a batch back");
        batch_fail(batch, describe_commit_error(error).outcome);
        observation_end_batch(&pipeline->observation, describe_commit_error(error).outcome);
}

/* result: of storage_commit(), not an error. */
static void count_successful_commit(struct pipeline *pipeline, int result, struct now now) {
        struct batch_commit *commit = &pipeline->commit;
        const struct change_set *change_set = &commit->change_set;
        struct counters *counters = &pipeline->counters;

        /* limited: while the disk is almost full, small commits succeed and large ones fail */
        if (commit->error < 0 && result == 0)
                log_limited(&commit->log_limit, LOG_INFO, "commits succeed again");
        commit->error = result == STORAGE_FULL ? -ENOSPC : 0;
        counters->n_commits++;
        counters->n_rows += change_set->n_rows;
        histogram_add(&counters->latencies[LATENCY_COMMIT], now.mono_ns - commit->start_ns);
        work_clock_set_quantum(&pipeline->clock, now.mono_ns - commit->start_ns);
}

static void count_replies(struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->batch;
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

/*
 * The batch is stored or need not be, or it is rolled back. error: 0, or that of the commit or of its
 * preparation. -ENOSPC proves that there was no other writer, so replies that only needed this proof are
 * sent.
 */
static void settle_batch(struct pipeline *pipeline, int error, struct now now) {
        if (error < 0)
                count_failed_commit(pipeline, error, now);
        if (error < 0 && (error != -ENOSPC || batch_has_changes(&pipeline->batch)))
                roll_back_batch(pipeline, error);
        else
                observation_end_batch(&pipeline->observation, OUTCOME_DONE);
        pipeline->upkeep.n_done++;
        count_replies(pipeline);
        pipeline->batch.state = BATCH_PUBLISHING;
}

void pipeline_committed(struct pipeline *pipeline, int result, struct now now) {
        if (result == -ESTALE)
                end_process(pipeline, "it is unknown whether the last commit is stored");
        if (result >= 0) {
                count_successful_commit(pipeline, result, now);
                state_commit(pipeline->state, &pipeline->commit.change_set);
        }
        settle_batch(pipeline, result >= 0 ? 0 : result, now);
}

/* 2. The begin of a commit */

/*
 * Stage the batch's notifications. Returns -ENOMEM if memory is short: a change must not become durable
 * without its notifications. But without a storage, the notifications are dropped and the batch takes
 * effect: undoing it may need more memory.
 */
static int stage_notifications(struct pipeline *pipeline) {
        struct batch *batch = &pipeline->batch;
        int r;

        batch->sequence_before = pipeline->state->notifications.last_sequence;
        r = state_stage(pipeline->state, &batch->effects);
        if (r == 0 || pipeline->storage)
                return r;

        for (size_t i = 0; i < batch->effects.n_notifications; i++)
                drops_out_of_memory(&pipeline->drops);
        return 0;
}

/*
 * Return true if the batch must be stored before its replies: it has changes; a reply has a version that is
 * not stored; the run of a broker, the lease, or a check of the storage requires a commit; or the lease has
 * ended. Call after the execution: a reply may have read what another writer has replaced, and then only a
 * commit proves that there is none.
 */
static bool must_be_stored(const struct pipeline *pipeline) {
        return pipeline->storage &&
               (batch_has_changes(&pipeline->batch) || pipeline->batch.is_commit_required ||
                !storage_has_lease(pipeline->storage));
}

/* As commit_begin(), but an error is not handled yet. */
static int prepare_commit(struct pipeline *pipeline, struct now now) {
        const struct effects *effects = &pipeline->batch.effects;
        int r;

        observation_add_changes(&pipeline->observation, effects, now);
        r = stage_notifications(pipeline);
        if (r < 0)
                return r;
        if (!must_be_stored(pipeline)) {
                state_commit(pipeline->state, NULL);
                return 0;
        }
        r = state_make_change_set(pipeline->state, effects, now, &pipeline->commit.change_set);
        if (r < 0)
                return r;
        pipeline->commit.start_ns = pipeline->clock.read_ns; /* `now` is older */
        return 1;
}

int commit_begin(struct pipeline *pipeline, struct now now) {
        int r = prepare_commit(pipeline, now);

        if (r > 0)
                pipeline->batch.state = BATCH_COMMITTING;
        else
                settle_batch(pipeline, r, now);
        return r;
}
