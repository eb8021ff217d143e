/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the files of this directory. */

#include "base/time_units.h"
#include "codec/invocation.h"
#include "pipeline/batch.h"
#include "pipeline/client_log.h"
#include "pipeline/outbox_frames.h"
#include "pipeline/outbox_messages.h"
#include "pipeline/peer.h"
#include "pipeline/pipeline.h"
#include "pipeline/quantum.h"
#include "pipeline/queue.h"

/*
 * The cycle of a batch. cycle_advance() moves it on as far as it can go.
 *
 *          ┌──────────────────────────── all published ────────────────────────────┐
 *          ▼                                                                       │
 *        OPEN ───── the batch must end ─────► COMMITTING ── pipeline_work_done() ──► PUBLISHING
 *          │                                                                       ▲
 *          └────────────────────── there is nothing to store ──────────────────────┘
 *
 * Requests are executed only in OPEN, so no request is executed on state that may still be rolled
 * back. In OPEN the cycle also does other work: it applies next_policy, commits a batch for
 * must_commit, and identifies the broker (PEER_NEW) when the batch is empty.
 */
enum cycle_state {
        CYCLE_OPEN,
        CYCLE_COMMITTING, /* the worker thread uses the storage, `change_set` and `commit_result` */
        CYCLE_PUBLISHING, /* left when all is published; the transport may have no room for long */
};

/*
 * Delay of the next engine tick after a failed commit or a tick without memory: the shortage may be
 * brief.
 */
#define TICK_RETRY_NS NS_PER_S

struct cycle {
        enum cycle_state state;
        bool must_commit; /* commit the batch even if it changes nothing */
        struct batch batch;

        struct change_set change_set;  /* of the batch; argument of storage_commit() */
        int commit_result;             /* of storage_commit() */
        int64_t commit_start_ns;       /* of the last commit; 0: none */
        int commit_error;              /* of the last commit; -ENOSPC also for STORAGE_FULL; 0: none */
        unsigned int n_failing_checks; /* calls of pipeline_check_storage() while commits fail */
        int64_t next_tick_ns;          /* no engine tick before; set after a failed commit or tick */

        /* For pipeline_check_progress(). */
        uint64_t n_done;          /* items served and batches whose commit has ended */
        uint64_t n_done_at_check; /* n_done at the last check */
        bool had_work_at_check;
};

struct pipeline {
        struct state *state;     /* owned */
        struct storage *storage; /* owned; NULL: a batch needs no commit */
        struct transport transport;
        struct pipeline_callbacks callbacks;
        const struct hooks *hooks; /* borrowed; NULL: none */
        struct encoder encoder;
        struct decoder decoder;

        struct cycle cycle;
        struct peer peer;
        struct queue queue;
        struct outbox outbox;
        struct outbox_messages messages; /* backends of the outbox */
        struct outbox_frames frames;
        struct quantum quantum;

        struct policy *policy;      /* owned; the engine borrows it */
        struct policy *next_policy; /* owned; if has_next_policy, applied in OPEN when a broker is served */
        bool has_next_policy;

        struct counters counters;
        struct drops drops;
        struct client_log client_log;
        struct log_limit storage_limit; /* of log lines */
};

/* cycle.c */

/*
 * Finish the batch. Then identify the broker and apply the policy, serve what waits until the quantum
 * is over, and finish this batch as well. Return early while a commit is in flight or the transport
 * has no room.
 */
void cycle_advance(struct pipeline *pipeline, struct now now);

/* As cycle_advance(), in a quantum of its own, in which the present batch is finished already. */
void cycle_flush(struct pipeline *pipeline, struct now now);

/* As engine_step(), with the effects of the batch. In OPEN. */
int cycle_step(struct pipeline *pipeline, const struct event *event, struct now now);

/* Return true if the batch must end: batch_is_full(), or at a limit of the storage. */
bool cycle_batch_is_full(const struct pipeline *pipeline);

/*
 * Commit the effects of the batch at once, without replies, on this thread. Returns 0, -ENOMEM, or
 * the error of storage_commit(). After an error the batch is not undone.
 */
int cycle_commit_now(struct pipeline *pipeline, struct now now);

/* Charge the time since the last reading of the clock to the quantum and to the batch. */
void cycle_charge(struct pipeline *pipeline);

/* serve.c */

/* Return true if items can be served: in OPEN, if the batch may take another one. */
bool serve_can_begin(const struct pipeline *pipeline);

/* Serve the items that wait, by turns, until the quantum is over or the batch must end. */
void serve_waiting(struct pipeline *pipeline, struct now now);
