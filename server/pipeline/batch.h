/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/invocation.h"
#include "engine/effects.h"
#include "storage/storage.h"

struct queue_item;

/*
 * One batch: the effects of the items that are served together, and the replies to their requests.
 * With `limits` set, and zeros otherwise, it is open and empty.
 *
 *          ┌───────────────────── all published: batch_reset() ───────────────────────┐
 *          ▼                                                                          │
 *        OPEN ───────── commit_begin() ────► COMMITTING ── pipeline_committed() ──► PUBLISHING
 *          │                                                                          ▲
 *          └────────── commit_begin(): there is nothing to store, or it failed ───────┘
 *
 * Only these three functions set the state. pipeline_advance() calls commit_begin() and batch_reset(); its
 * caller calls pipeline_committed(). Items are served only in OPEN, so no request is executed on state that
 * may still be rolled back. Before, seeding_run() calls all three: its batches have no replies to publish.
 *
 * The cost of a batch: every client waits while a batch is committed and published. So a batch is
 * limited by what it costs, not by what its requests have sent: a request of a few bytes may have a
 * reply of megabytes, or notify many clients. batch_n_bytes() is the sum of
 * - each item that was served: its record in a frame;
 * - each reply: the value or the keys of the page, response topic and correlation data;
 * - each change: the key, the new value, and the former value, whose pages the storage frees;
 * - each notification: topic and value, once per recipient. With the plugin, a frame has the value
 *   once for many recipients, but the broker makes a copy for each of them, and the broker's loop
 *   is shared as well;
 * - BATCH_ITEM_BYTES for each of these. So the bytes also limit their number.
 *
 * batch_is_full() compares this with BATCH_BYTES_MAX. It also limits the items that were served and the
 * watched changes, as each of these is published as one message or more, and what the storage limits. A
 * step (one item, or one tick) that exceeds a limit is completed. Then the batch ends, and the next batch
 * begins with the item of the next client: see fair_queue/fair_queue.h.
 */
#define BATCH_BYTES_MAX  ((size_t)1 << 20)
#define BATCH_ITEM_BYTES 100

/*
 * Maximum number of items of a batch, and of its watched changes. Requests that arrive later wait for all
 * replies of the batch, whatever their clients. A commit shared by this many requests needs 12 ms to become
 * slower than a broker that handles 20,000 requests a second.
 */
#define BATCH_ITEMS_MAX 256

struct requester;

/* The reply to one request, and what is necessary to publish it. */
struct pending_reply {
        uint8_t *texts; /* owned: the memory of the next three, each with a NUL */
        struct slice response_topic;
        struct slice correlation_data; /* data NULL: the request has none */
        struct slice fault_value;      /* if `fault` is not REQUEST_FAULT_NONE */
        bool has_expiry;
        uint32_t expiry_s; /* message expiry interval on arrival */
        int64_t arrived_ns;
        enum verb verb;       /* VERB_UNKNOWN: not executed, so not in counters.n_replies */
        uint64_t hook_number; /* as in the invocation */
        /*
         * The record of a request in a frame (protocol/companion.h), and its connection. record_number 0:
         * the request came as a message.
         */
        uint64_t record_number, connection;
        /*
         * Number of changes of watched keys in the batch, up to this request's own. Their
         * notifications precede the reply.
         */
        size_t n_preceding_changes;
        struct requester *requester; /* owned; NULL: publish the reply */
        struct reply reply;          /* owned; if `fault` is REQUEST_FAULT_NONE */
        enum request_fault fault;
};

enum batch_state {
        BATCH_OPEN,
        BATCH_COMMITTING, /* the worker thread uses the storage and the change set */
        BATCH_PUBLISHING, /* until outbox_publish() returns true; the transport may have no room for long */
};

struct batch {
        enum batch_state state;
        struct storage_limits limits; /* n_rows: of effects.n_keyed_changes; n_bytes: of batch_n_bytes() */
        /*
         * With a storage, the batch is committed even without changes, before an item is served in it: to
         * store the run of a broker (peer.c), to renew the lease of the storage or to try it (upkeep.c).
         */
        bool is_commit_required;
        /*
         * A reply has a version above the stored clock. KEYNOTIFY replies with the present HLC, even if it
         * changes no row. With a storage, commit such a batch before the reply: otherwise, after a crash,
         * the HLC could be behind a version that a client has. Without a storage, the stored clock never
         * advances.
         */
        bool has_unstored_version;
        size_t n_items; /* served in the batch, of all kinds */
        size_t n_bytes; /* of the items and the replies; effects.n_bytes has those of the effects */
        struct effects effects;
        struct pending_reply replies[BATCH_ITEMS_MAX]; /* at most one for each item */
        size_t n_replies;
        size_t n_replies_published;
        uint64_t sequence_before;    /* sequence of the last change before this batch */
        uint64_t last_record_number; /* of the records in frames that were executed in the batch; 0: none */
        int64_t work_ns; /* time for executing and publishing, without the commit; for FRAME_END */
};

void batch_deinit(struct batch *batch);

/* Open the batch again: remove all effects and replies, and set the counts to 0. Keep the memory. */
void batch_reset(struct batch *batch);

/*
 * Return true if the batch need not end: no item was served in it, it has nothing to store or to publish,
 * and no commit is required. Items count towards the limits, so a full batch without effects and replies
 * must end too.
 */
bool batch_is_empty(const struct batch *batch);

/* Return true if the batch has something that must be durable before its replies. */
bool batch_has_changes(const struct batch *batch);

/*
 * Add an item of the queue that was served to n_items and n_bytes. record_number: of its record; 0: the
 * item is a message.
 */
void batch_add_item(struct batch *batch, size_t n_bytes, uint64_t record_number);

/* Return the cost of the batch: see above. */
size_t batch_n_bytes(const struct batch *batch);

/*
 * Return true if the batch must end before another step: at BATCH_BYTES_MAX, at BATCH_ITEMS_MAX items or
 * watched changes, or at a limit of the storage.
 */
bool batch_is_full(const struct batch *batch);

/*
 * Add the reply to the item: a copy of what its invocation has, also of the error that decoding has found.
 * Returns it, or NULL if memory is short. Without an error, then execute the request, which sets `reply`.
 * Always call batch_end_reply() then. The batch must not be full.
 */
struct pending_reply *batch_add_reply(struct batch *batch, const struct queue_item *item,
                                      const struct invocation *invocation);

/*
 * The reply is complete. Set its n_preceding_changes, add its payload to n_bytes, and set
 * has_unstored_version. clock: the stored one.
 */
void batch_end_reply(struct batch *batch, struct pending_reply *pending, struct version clock);

/*
 * Call after a failed commit and state_undo(). Replace every reply of the batch by this outcome,
 * except a fault, and remove all effects. But the reply to a repeated request of an earlier batch stays:
 * what this request has changed is committed.
 */
void batch_fail(struct batch *batch, enum outcome outcome);
