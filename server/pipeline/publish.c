/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/internal.h"

#include <errno.h>

#include "pipeline/hooks.h"
#include "protocol/topics.h"

/* 1. Replies */

/* The registrations of the request's connection, after the batch. */
static enum frame_tracking tracking(const struct pipeline *pipeline, const struct pending_reply *pending) {
        if (pending->verb != VERB_KEYNOTIFY)
                return FRAME_TRACKING_UNCHANGED;
        return engine_registration_of_connection(pipeline->state->engine, pending->connection)
                       ? FRAME_TRACKED
                       : FRAME_UNTRACKED;
}

/*
 * Publish the reply to a request in a frame. message NULL: test control publishes the reply. A reply
 * that fits in a packet with a short response topic may be too large for a frame.
 */
static void publish_in_frame(struct pipeline *pipeline, const struct pending_reply *pending,
                             const struct message *message) {
        struct frames_out *frames_out = &pipeline->frames_out;
        struct frame_reply reply = { .number = pending->number, .tracking = tracking(pipeline, pending) };
        struct message error;

        if (frames_out_reply(frames_out, &reply, message) != -EMSGSIZE)
                return;
        if (encoder_reply(&pipeline->encoder, &(struct reply){ .result.outcome = OUTCOME_REPLY_TOO_LARGE },
                          &error) < 0)
                frames_out_fail(frames_out);
        else
                (void)frames_out_reply(frames_out, &reply, &error);
}

/* Publish the message as the reply. expiry_s: the rest. */
static void publish_as_reply(struct pipeline *pipeline, const struct pending_reply *pending,
                             uint32_t expiry_s, struct message *message, struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        bool is_published;
        uint16_t id;

        message->topic = pending->response_topic;
        message->correlation_data = pending->correlation_data;
        message->has_expiry = pending->has_expiry;
        message->expiry_s = pending->has_expiry ? expiry_s : 0;
        is_published = !hooks || hooks->reply(hooks->userdata, pending->hook_number, message, now);
        if (pending->number > 0)
                publish_in_frame(pipeline, pending, is_published ? message : NULL);
        else if (is_published)
                publisher_send(&pipeline->publisher, message, &id);
}

static int encode(struct pipeline *pipeline, const struct pending_reply *pending,
                  struct message *ret_message) {
        if (pending->fault != REQUEST_FAULT_NONE)
                return encoder_fault(&pipeline->encoder, pending->fault, pending->fault_value, ret_message);
        return encoder_reply(&pipeline->encoder, &pending->reply, ret_message);
}

static void publish_reply(struct pipeline *pipeline, const struct pending_reply *pending, struct now now) {
        uint32_t expiry_s =
                expiry_rest_s(pending->has_expiry, pending->expiry_s, now.mono_ns - pending->arrived_ns);
        struct message message;

        if (expiry_s == 0)
                pipeline->counters.n_expired++;
        else if (encode(pipeline, pending, &message) == 0)
                publish_as_reply(pipeline, pending, expiry_s, &message, now);
        else if (pending->number > 0)
                frames_out_fail(&pipeline->frames_out);
        else
                publisher_count_out_of_memory(&pipeline->publisher);
}

/*
 * Add the durations of the replies since `first` to the histogram. Read the clock once for all of
 * them.
 */
static void count_durations(struct pipeline *pipeline, size_t first) {
        struct histogram *whole = &pipeline->counters.latencies[STAGE_WHOLE];
        const struct batch *batch = &pipeline->cycle.batch;
        int64_t now_ns;

        if (first == batch->n_replies_published)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        for (; first < batch->n_replies_published; first++)
                histogram_add(whole, now_ns - batch->replies[first].arrived_ns);
}

static bool publish_notifications(struct pipeline *pipeline, uint64_t sequence) {
        /* read_ns: the last reading of the clock, which may be newer than `now` */
        return delivery_publish(&pipeline->delivery, sequence, pipeline->quantum.read_ns);
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

/*
 * Report the end of the records that were executed in the batch, and how long their execution and
 * the encoding of their replies took.
 */
static void publish_end(struct pipeline *pipeline) {
        struct batch *batch = &pipeline->cycle.batch;

        if (batch->last_number == 0)
                return;
        cycle_charge(pipeline);
        frames_out_end(&pipeline->frames_out, batch->last_number, (uint64_t)batch->execution_ns);
}

/*
 * The order of publishing:
 * 1. Replies, each after the notifications of its own change and of all earlier changes. So when a
 *    client has its reply, the watchers are notified, even if the process is killed directly after.
 *    After the reply to KEYNOTIFY STOP, no notification follows.
 * 2. The remaining notifications, if a broker is served.
 * 3. The end of the records in frames: the plugin then sends the next ones.
 */
bool publish_batch(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;

        if (!publish_replies(pipeline, now) ||
            (delivery_is_waiting(&pipeline->delivery) && !publish_notifications(pipeline, UINT64_MAX)))
                return false;

        publish_end(pipeline);
        frames_out_flush(&pipeline->frames_out);
        batch_reset(batch);
        return true;
}
