/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/effects.h"
#include "engine/request.h"
#include "protocol/message.h"

/*
 * One batch: the effects of the requests that are executed together, and their replies with the addresses of the replies.
 * pipeline/publish.h publishes a batch once it is stored. All zeros is an empty batch.
 */

/* The reply to one request, and its address. */
struct pending_reply {
        /*
         * Borrowed from the request. In a batch, where the data may move, they are valid only as batch_next_reply()
         * returns them.
         */
        struct slice response_topic;
        struct slice correlation_data; /* data NULL: the request has none */
        size_t text_offset;            /* of both in the batch's texts */
        bool has_expiry;
        uint32_t expiry_s; /* message expiry interval on arrival */
        int64_t arrived_ns;
        enum verb verb;                /* to count the reply by; N_VERBS: it is not counted */
        uint64_t number;               /* for the hook `answer` */
        size_t n_notifications_before; /* of the batch: they are published before this reply */
        struct reply reply;            /* owned */
};

struct batch {
        struct effects effects; /* without replies: each is moved to its pending reply */
        bool is_stored;         /* the commit has ended: the batch may be published */
        struct pending_reply *replies;
        size_t n_replies, replies_capacity;
        struct buf texts; /* topics and correlation data, each followed by a NUL */
        size_t n_track_changes_published, n_replies_published, n_notifications_published;
};

void batch_deinit(struct batch *batch);

/* Remove all effects and replies; keep the memory for the next batch. */
void batch_reset(struct batch *batch);

/* Return true if there is nothing to store or publish. */
bool batch_is_empty(const struct batch *batch);

/* Return the reply address of a request. It borrows from the message; there is no reply in it yet. */
struct pending_reply pending_reply_to(const struct message *message, int64_t arrived_ns);

/* Return true if the request's message expiry interval has passed. */
bool pending_reply_is_expired(const struct pending_reply *pending, int64_t now_ns);

/* Make the message a reply to this address, with the message expiry that is left. The texts are borrowed. */
void pending_reply_address(const struct pending_reply *pending, int64_t now_ns, struct message *message);

/*
 * Add a copy of the pending reply to the batch, texts included. Return the copy, valid until the next call, or NULL if memory
 * is short. Then execute the request, and call batch_complete_reply() or batch_drop_reply().
 */
struct pending_reply *batch_add_reply(struct batch *batch, const struct pending_reply *pending);

/* The reply of the last added pending reply. It is published after the notifications that the batch has now. Takes ownership. */
void batch_complete_reply(struct batch *batch, struct pending_reply *pending, struct reply reply);

/* Remove the last added pending reply: its request failed. */
void batch_drop_reply(struct batch *batch, const struct pending_reply *pending);

/* Return the first reply that is not published yet, or NULL. Valid until the batch changes. */
const struct pending_reply *batch_next_reply(struct batch *batch);

/* After a failed commit and engine_undo(): effects_fail(), and every reply of the batch becomes this outcome. */
void batch_fail(struct batch *batch, enum outcome outcome);
