/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/internal.h"

#include "pipeline/hooks.h"
#include "protocol/companion.h"
#include "protocol/topics.h"

/* 1. Replies */

/* Publish the message as the reply. expiry_s: from pending_reply_expiry_s(). */
static void publish_as_reply(struct pipeline *pipeline, const struct pending_reply *pending,
                             uint32_t expiry_s, struct message *message, struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        uint16_t id;

        message->topic = pending->response_topic;
        message->correlation_data = pending->correlation_data;
        message->has_expiry = pending->has_expiry;
        message->expiry_s = pending->has_expiry ? expiry_s : 0;
        if (hooks)
                hooks->reply(hooks->userdata, pending->number, message, now);
        else
                publisher_send(&pipeline->publisher, message, &id);
}

void publish_fault(struct pipeline *pipeline, const struct pending_reply *pending, enum request_fault fault,
                   struct slice value, struct now now) {
        struct message message;

        if (encoder_fault(&pipeline->encoder, fault, value, &message) < 0)
                publisher_count_out_of_memory(&pipeline->publisher);
        else
                publish_as_reply(pipeline, pending, pending_reply_expiry_s(pending, now.mono_ns), &message,
                                 now);
}

static void publish_reply(struct pipeline *pipeline, const struct pending_reply *pending, struct now now) {
        uint32_t expiry_s = pending_reply_expiry_s(pending, now.mono_ns);
        struct message message;

        if (expiry_s == 0)
                pipeline->counters.n_expired++;
        else if (encoder_reply(&pipeline->encoder, &pending->reply, &message) < 0)
                publisher_count_out_of_memory(&pipeline->publisher);
        else
                publish_as_reply(pipeline, pending, expiry_s, &message, now);
}

/*
 * Add the durations of the replies since `first` to the histogram. Read the clock once for all of
 * them.
 */
static void count_durations(struct pipeline *pipeline, size_t first) {
        struct histogram *whole = &pipeline->counters.latencies[STAGE_WHOLE];
        const struct batch *batch = &pipeline->cycle.batch;
        int64_t now_ns;

        if (first == batch->n_replies_published || !pipeline->transport.clock_ns)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        for (; first < batch->n_replies_published; first++)
                histogram_add(whole, now_ns - batch->replies[first].arrived_ns);
}

static bool publish_notifications(struct pipeline *pipeline, uint64_t sequence) {
        /* execution_start_ns: the last reading of the clock, which may be newer than `now` */
        return delivery_publish(&pipeline->delivery, sequence, pipeline->cycle.execution_start_ns);
}

static bool publish_replies(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        size_t first = batch->n_replies_published;
        const struct pending_reply *pending;

        while ((pending = batch_next_reply(batch)) &&
               publish_notifications(pipeline, batch->sequence_before + pending->n_preceding_changes) &&
               publisher_has_room(&pipeline->publisher)) {
                batch->n_replies_published++;
                publish_reply(pipeline, pending, now);
        }
        count_durations(pipeline, first);
        return batch->n_replies_published == batch->n_replies;
}

/* 2. The batch */

static bool publish_track_changes(struct pipeline *pipeline) {
        static const struct slice topics[] = {
                [TRACK_CONNECTION] = SLICE_LITERAL(COMPANION_TRACK),
                [UNTRACK_CONNECTION] = SLICE_LITERAL(COMPANION_UNTRACK),
                [KICK_CONNECTION] = SLICE_LITERAL(COMPANION_KICK),
        };
        struct batch *batch = &pipeline->cycle.batch;
        const struct effects *effects = &batch->effects;

        while (batch->n_track_changes_published < effects->n_track_changes &&
               publisher_has_room(&pipeline->publisher)) {
                const struct track_change *track_change =
                        &effects->track_changes[batch->n_track_changes_published++];

                publisher_send_connection(&pipeline->publisher, topics[track_change->action],
                                          track_change->connection);
        }
        return batch->n_track_changes_published == effects->n_track_changes;
}

/*
 * The order of publishing:
 * 1. Track changes: the plugin must track a connection before the client has the reply to
 *    KEYNOTIFY.
 * 2. Replies, each after the notifications of its own change and of all earlier changes. So when a
 *    client has its reply, the watchers are notified, even if the process is killed directly after.
 *    After the reply to KEYNOTIFY STOP, no notification follows.
 * 3. The remaining notifications, if a broker is served.
 */
bool publish_batch(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;

        if (!publish_track_changes(pipeline) || !publish_replies(pipeline, now) ||
            (delivery_is_waiting(&pipeline->delivery) && !publish_notifications(pipeline, UINT64_MAX)))
                return false;

        batch_reset(batch);
        return true;
}
