/* SPDX-License-Identifier: Apache-2.0 */

/* What the pipeline does from time to time: ticks, checks of the storage, a watchdog. */

#include <errno.h>

#include "pipeline/internal.h"

/* A commit that takes longer than this is stalled. */
#define COMMIT_STALLED_NS INT64_C(100000000)

/* While commits fail, every n-th call of pipeline_check_storage() tries a commit. */
#define CHECKS_PER_RETRY 3

/* 1. Ticks */

/*
 * Repeat small steps until no work is due, the quantum is over, or no step is possible. The next call
 * continues. Keys expire only while a broker is served, because its kind determines how to notify the
 * clients, and while no new policy waits, because the policy decides which clients to notify.
 */
static void tick_engine(struct pipeline *pipeline, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        work_clock_resume(&pipeline->clock, now);
        while (!pipeline->has_next_policy && engine_next_deadline(pipeline->state->engine) <= now.mono_ns &&
               pipeline_can_step(pipeline) && !work_clock_is_over(&pipeline->clock)) {
                if (engine_step(pipeline->state->engine, &tick, now, &pipeline->batch.effects) < 0) {
                        pipeline->upkeep.next_tick_ns = now.mono_ns + TICK_RETRY_NS;
                        return;
                }
                work_clock_charge(&pipeline->clock, &pipeline->batch.work_ns);
        }
}

/* When to commit so that the lease of the storage does not end; INT64_MAX while a batch is not open. */
static int64_t lease_renewal_ns(const struct pipeline *pipeline) {
        return pipeline->storage && pipeline->batch.state == BATCH_OPEN
                       ? storage_renewal_ns(pipeline->storage)
                       : INT64_MAX;
}

void upkeep_tick(struct pipeline *pipeline, struct now now) {
        peer_tick(&pipeline->peer, now);
        outbox_frames_tick(&pipeline->outbox, now);
        requesters_expire(&pipeline->requesters, now.mono_ns);
        if (now.mono_ns >= pipeline->upkeep.next_tick_ns)
                tick_engine(pipeline, now);
        if (now.mono_ns >= lease_renewal_ns(pipeline))
                pipeline->batch.is_commit_required = true;
}

static int64_t earlier_deadline(int64_t a_ns, int64_t b_ns) {
        return a_ns < b_ns ? a_ns : b_ns;
}

int64_t pipeline_next_deadline(const struct pipeline *pipeline) {
        bool can_step = pipeline_can_step(pipeline);
        int64_t deadline_ns = can_step ? engine_next_deadline(pipeline->state->engine) : INT64_MAX;

        if ((can_step && queue_first(&pipeline->queue)) ||
            (pipeline->batch.state == BATCH_OPEN && peer_is_preparing(&pipeline->peer)))
                return 0;

        if (deadline_ns < pipeline->upkeep.next_tick_ns)
                deadline_ns = pipeline->upkeep.next_tick_ns;
        deadline_ns = earlier_deadline(deadline_ns, lease_renewal_ns(pipeline));
        deadline_ns = earlier_deadline(deadline_ns, pipeline->outbox.frames.deadline_ns);
        deadline_ns = earlier_deadline(deadline_ns, requesters_next_deadline(&pipeline->requesters));
        return earlier_deadline(deadline_ns, pipeline->peer.deadline_ns);
}

/* 2. The storage */

/*
 * A failed commit was undone: registrations that KEYNOTIFY STOP had ended are restored. When commits
 * succeed again, WELCOME says which of their connections have ended. Send HELLO at most once per check:
 * while the disk is almost full, commits can fail and succeed in turn.
 */
static bool must_repeat_hello(const struct pipeline *pipeline) {
        return engine_has_restored_registrations(pipeline->state->engine) && pipeline->commit.error == 0 &&
               pipeline->peer.state == PEER_WITH_PLUGIN;
}

void pipeline_check_storage(struct pipeline *pipeline, struct now now) {
        const struct batch_commit *commit = &pipeline->commit;
        bool is_needed;

        if (!pipeline->storage || pipeline->batch.state == BATCH_COMMITTING)
                return;

        if (must_repeat_hello(pipeline)) {
                peer_restart(pipeline);
                return;
        }

        /* The first commit finds out whether the disk has room. */
        is_needed = state_needs_commit(pipeline->state, now) || commit->start_ns == 0;
        if (commit->error < 0 && ++pipeline->upkeep.n_failing_checks % CHECKS_PER_RETRY == 0)
                is_needed = true;
        if (is_needed && pipeline->batch.state == BATCH_OPEN)
                pipeline->batch.is_commit_required = true;
}

/* 3. The watchdog */

bool pipeline_is_commit_stalled(const struct pipeline *pipeline, struct now now) {
        return pipeline->batch.state == BATCH_COMMITTING &&
               now.mono_ns - pipeline->commit.start_ns > COMMIT_STALLED_NS;
}

bool pipeline_check_progress(struct pipeline *pipeline) {
        struct upkeep *upkeep = &pipeline->upkeep;
        bool had_work = upkeep->had_work_at_check;
        uint64_t n_done_before = upkeep->n_done_at_check;

        upkeep->n_done_at_check = upkeep->n_done;
        if (pipeline->batch.state == BATCH_COMMITTING)
                upkeep->had_work_at_check = !storage_is_waiting(pipeline->storage);
        else
                upkeep->had_work_at_check =
                        !pipeline_is_idle(pipeline) && outbox_keeps_up(&pipeline->outbox);
        return !had_work || !upkeep->had_work_at_check || upkeep->n_done != n_done_before;
}
