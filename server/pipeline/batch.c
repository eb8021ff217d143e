/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/batch.h"

#include <stdlib.h>

#include "base/array.h"

#define NS_PER_S INT64_C(1000000000)

static void reset_replies(struct batch *batch) {
        for (size_t i = 0; i < batch->n_replies; i++)
                reply_deinit(&batch->replies[i].reply);
        batch->n_replies = 0;
        batch->n_replies_published = 0;
}

void batch_reset(struct batch *batch) {
        reset_replies(batch);
        effects_reset(&batch->effects);
        buf_reset(&batch->texts);
        batch->is_stored = false;
        batch->n_track_changes_published = 0;
        batch->n_notifications_published = 0;
}

void batch_deinit(struct batch *batch) {
        reset_replies(batch);
        effects_deinit(&batch->effects);
        buf_deinit(&batch->texts);
        free(batch->replies);
        *batch = (struct batch){ 0 };
}

bool batch_is_empty(const struct batch *batch) {
        const struct effects *effects = &batch->effects;

        return effects->n_rows == 0 && effects->n_track_changes == 0 && batch->n_replies == 0 &&
               effects->n_notifications == 0;
}

struct pending_reply pending_reply_to(const struct message *message, int64_t arrived_ns) {
        return (struct pending_reply){
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .has_expiry = message->has_expiry,
                .expiry_s = message->expiry_s,
                .arrived_ns = arrived_ns,
                .verb = N_VERBS,
        };
}

/* A test clock may have been set back since the request arrived. */
static int64_t waited_s(const struct pending_reply *pending, int64_t now_ns) {
        return now_ns > pending->arrived_ns ? (now_ns - pending->arrived_ns) / NS_PER_S : 0;
}

bool pending_reply_is_expired(const struct pending_reply *pending, int64_t now_ns) {
        return pending->has_expiry && waited_s(pending, now_ns) >= pending->expiry_s;
}

void pending_reply_address(const struct pending_reply *pending, int64_t now_ns, struct message *message) {
        message->topic = pending->response_topic;
        if (pending->correlation_data.data)
                message->correlation_data = pending->correlation_data;
        message->has_expiry = pending->has_expiry;
        if (pending->has_expiry)
                message->expiry_s = pending->expiry_s - (uint32_t)waited_s(pending, now_ns);
}

struct pending_reply *batch_add_reply(struct batch *batch, const struct pending_reply *pending) {
        size_t text_offset = batch->texts.length;
        struct pending_reply *added;

        if (array_reserve((void **)&batch->replies, &batch->replies_capacity, batch->n_replies + 1,
                          sizeof(*batch->replies)) < 0)
                return NULL;

        buf_append_slice(&batch->texts, pending->response_topic);
        buf_append(&batch->texts, "", 1);
        buf_append_slice(&batch->texts, pending->correlation_data);
        buf_append(&batch->texts, "", 1);
        if (buf_failed(&batch->texts)) {
                batch->texts.length = text_offset;
                batch->texts.failed = false;
                return NULL;
        }

        added = &batch->replies[batch->n_replies++];
        *added = *pending;
        added->text_offset = text_offset;
        return added;
}

void batch_complete_reply(struct batch *batch, struct pending_reply *pending, struct reply reply) {
        pending->reply = reply;
        pending->n_notifications_before = batch->effects.n_notifications;
}

void batch_drop_reply(struct batch *batch, const struct pending_reply *pending) {
        batch->texts.length = pending->text_offset;
        batch->n_replies--;
}

const struct pending_reply *batch_next_reply(struct batch *batch) {
        struct pending_reply *pending;

        if (batch->n_replies_published == batch->n_replies)
                return NULL;

        pending = &batch->replies[batch->n_replies_published];
        pending->response_topic.data = batch->texts.data + pending->text_offset;
        if (pending->correlation_data.data)
                pending->correlation_data.data =
                        pending->response_topic.data + pending->response_topic.length + 1;
        return pending;
}

void batch_fail(struct batch *batch, enum outcome outcome) {
        effects_fail(&batch->effects, outcome);
        for (size_t i = 0; i < batch->n_replies; i++) {
                reply_deinit(&batch->replies[i].reply);
                batch->replies[i].reply.outcome = outcome;
        }
}
