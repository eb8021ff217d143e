/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the files of this directory. A request meets five things, each with a header:
 *
 *     peer (peer.h)       the broker that is served, and what changes with it
 *     queue (queue.h)     what waits to be served
 *     engine              server/engine
 *     batch (batch.h)     what was served together: effects and replies; its commit (commit.h)
 *     outbox (outbox.h)   what is published: notifications, replies, ends of records
 *
 * pipeline.c has the events of the caller; upkeep.c what is due at a time; inspection.c what the caller
 * reads. pipeline_advance() leads from one of the five to the next; serve.c from the queue to the engine
 * and the batch. pipeline_can_step() says when the engine may go on.
 */

#include "base/time_units.h"
#include "codec/invocation.h"
#include "observation/client_log.h"
#include "observation/observation.h"
#include "pipeline/batch.h"
#include "pipeline/commit.h"
#include "pipeline/outbox_frames.h"
#include "pipeline/outbox_messages.h"
#include "pipeline/peer.h"
#include "pipeline/pipeline.h"
#include "pipeline/queue.h"
#include "pipeline/requester.h"
#include "pipeline/work_clock.h"

/*
 * Delay of the next engine tick after a failed commit or a tick without memory: the shortage may be
 * brief.
 */
#define TICK_RETRY_NS NS_PER_S

struct upkeep {
        int64_t next_tick_ns;          /* no engine tick before; set after a failed commit or tick */
        unsigned int n_failing_checks; /* calls of pipeline_check_storage() while commits fail */

        /* For pipeline_check_progress(). */
        uint64_t n_done;          /* items served and batches whose commit has ended */
        uint64_t n_done_at_check; /* n_done at the last check */
        bool had_work_at_check;
};

struct pipeline {
        struct state *state;     /* owned */
        struct storage *storage; /* owned; NULL: a batch needs no commit */
        struct pipeline_callbacks callbacks;
        struct transport transport;
        const struct hooks *hooks; /* borrowed; NULL: none */
        struct encoder encoder;
        struct decoder decoder;

        struct peer peer;
        struct queue queue;
        struct requesters requesters;
        const struct queue_item *control_item; /* during hooks.control(); NULL otherwise */
        const struct message *control_message; /* of this item, likewise */
        struct batch batch;
        struct batch_commit commit;
        struct outbox outbox;
        struct work_clock clock;
        struct upkeep upkeep;

        struct policy *policy;      /* owned; the engine borrows it */
        struct policy *next_policy; /* owned; if has_next_policy; takes effect between batches */
        bool has_next_policy;

        struct counters counters;
        struct frame_counters plugin_counters; /* at the last frame of the plugin */
        struct drops drops;
        struct client_log client_log;
        struct observation observation;
};

/* pipeline.c */

/*
 * Return true if the open batch must end: it is full, a commit is required, or, while the disk is full, it
 * has an item.
 */
bool pipeline_must_commit(const struct pipeline *pipeline);

/*
 * Return true if the engine may execute a request or a tick now: the broker keeps up, and the batch is
 * open and may take more. What the peer has to report to the engine needs the open batch only.
 */
bool pipeline_can_step(const struct pipeline *pipeline);

/* serve.c */

/*
 * Serve the items that wait, by turns, until the quantum is over or no step is possible. If some still
 * wait, the quantum is over.
 */
void serve_waiting(struct pipeline *pipeline, struct now now);

/* upkeep.c */

/* Do what is due at a time: retries, expired keys, the end of requests without a reply. */
void upkeep_tick(struct pipeline *pipeline, struct now now);
