/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox.h"

#include "pipeline/requester.h"

int outbox_send(struct outbox *outbox, const struct message *message) {
        const struct transport *transport = outbox->transport;
        int r = transport->publish(transport->userdata, message);

        if (r < 0)
                drops_unpublished(outbox->drops, message, r);
        else if (message->qos > 0)
                outbox->n_sent++;
        return r;
}

bool outbox_has_room(const struct outbox *outbox) {
        return outbox->transport->has_room(outbox->transport->userdata);
}

/* 1. The broker */

/* The notifications up to this one are published: continue with the first recipient of the next. */
static void set_published_sequence(struct outbox *outbox, uint64_t sequence) {
        outbox->published_sequence = sequence;
        outbox->recipients_offset = 0;
}

void outbox_open(struct outbox *outbox, const struct outbox_backend *backend) {
        bool was_kept = !outbox->backend || outbox->backend->is_kept;

        if (!was_kept || !backend->is_kept)
                set_published_sequence(outbox, outbox->state->acknowledged);
        outbox->backend = backend;
        outbox->status = OUTBOX_OPEN;
}

void outbox_close(struct outbox *outbox) {
        outbox->status = OUTBOX_CLOSED;
}

void outbox_fail(struct outbox *outbox) {
        if (outbox->status == OUTBOX_OPEN)
                outbox->status = OUTBOX_FAILED;
}

void outbox_skip_to(struct outbox *outbox, uint64_t sequence) {
        state_acknowledge(outbox->state, sequence);
        if (sequence > outbox->published_sequence)
                set_published_sequence(outbox, sequence);
}

static bool can_publish(const struct outbox *outbox) {
        return outbox->status == OUTBOX_OPEN || (outbox->backend && outbox->backend->is_kept);
}

/* 2. Notifications */

bool outbox_keeps_up(const struct outbox *outbox) {
        const struct notification_queue *pending = &outbox->state->notifications;

        return outbox->status == OUTBOX_OPEN && outbox_has_room(outbox) &&
               pending->n_pending < OUTBOX_PENDING_MAX && pending->n_bytes < OUTBOX_PENDING_BYTES_MAX;
}

static const struct pending_notification *next_notification(const struct outbox *outbox) {
        return notification_queue_after(&outbox->state->notifications, outbox->published_sequence);
}

bool outbox_is_waiting(const struct outbox *outbox) {
        return outbox->status == OUTBOX_OPEN && next_notification(outbox);
}

int outbox_n_copies(const struct outbox *outbox, const struct pending_notification *notification,
                    const struct recipient *recipient) {
        const struct hooks *hooks = outbox->hooks;
        const struct registration *registration;

        if (!hooks)
                return 1;

        registration = registrations_of_connection(engine_registrations(outbox->state->engine),
                                                   recipient->connection);
        return hooks->notification(hooks->userdata,
                                   registration ? registration->client_id : recipient->client, notification);
}

void outbox_count_notifications(struct outbox *outbox, const struct pending_notification *notification,
                                size_t n) {
        struct counters *counters = outbox->counters;

        if (notification->value.data)
                counters->n_notifications_set += n;
        else
                counters->n_notifications_deleted += n;
}

void outbox_lose(struct outbox *outbox) {
        drops_out_of_memory(outbox->drops);
        if (!outbox->backend->is_kept)
                outbox_fail(outbox);
}

/*
 * Publish the notifications up to this sequence while the transport has room. Returns false if it has
 * none. But true if nothing can be published: outbox_open() repeats what was not kept.
 */
static bool publish_notifications(struct outbox *outbox, uint64_t sequence) {
        const struct pending_notification *next;

        while (can_publish(outbox) && (next = next_notification(outbox)) && next->sequence <= sequence) {
                struct slice recipients = slice_skip(next->recipients, outbox->recipients_offset);
                struct message message;

                if (!outbox_has_room(outbox))
                        return false;
                if (encoder_notification(outbox->encoder, next->version, next->value, &message) == 0) {
                        outbox->backend->publish_notification(outbox, next, &message, &recipients);
                } else {
                        struct recipient recipient;

                        while (recipients_next(&recipients, &recipient))
                                outbox_lose(outbox);
                }
                if (recipients.length == 0)
                        set_published_sequence(outbox, next->sequence);
                else
                        outbox->recipients_offset = next->recipients.length - recipients.length;
        }
        return true;
}

/* 3. Replies */

/* result: of encoding the reply. */
static void answer_requester(struct outbox *outbox, const struct pending_reply *pending, int result,
                             const struct message *message) {
        if (result < 0)
                drops_out_of_memory(outbox->drops);
        else
                requester_reply(pending->requester,
                                pending->fault == REQUEST_FAULT_NONE ? &pending->reply : NULL, message);
}

static void answer_request(struct outbox *outbox, const struct pending_reply *pending, struct now now) {
        uint32_t expiry_s = message_expiry_rest_s(pending->has_expiry, pending->expiry_s,
                                                  now.mono_ns - pending->arrived_ns);
        const struct hooks *hooks = outbox->hooks;
        struct message message;
        bool must_publish;
        int r;

        if (expiry_s == 0) {
                outbox->counters->n_expired++;
                return;
        }
        if (pending->fault == REQUEST_FAULT_NONE)
                r = encoder_reply(outbox->encoder, &pending->reply, &message);
        else
                r = encoder_fault(outbox->encoder, pending->fault, pending->fault_value, &message);
        if (pending->requester) {
                answer_requester(outbox, pending, r, &message);
                return;
        }
        if (r < 0) {
                outbox_lose(outbox);
                return;
        }

        message.topic = pending->response_topic;
        message.correlation_data = pending->correlation_data;
        message.has_expiry = pending->has_expiry;
        message.expiry_s = pending->has_expiry ? expiry_s : 0;
        must_publish = !hooks || hooks->reply(hooks->userdata, pending->hook_number, &message, now);
        outbox->backend->publish_reply(outbox, pending, must_publish ? &message : NULL);
}

static bool publish_replies(struct outbox *outbox, struct now now) {
        struct batch *batch = outbox->batch;

        for (; batch->n_replies_published < batch->n_replies; batch->n_replies_published++) {
                const struct pending_reply *pending = &batch->replies[batch->n_replies_published];
                uint64_t sequence = batch->sequence_before + pending->n_preceding_changes;

                if (!publish_notifications(outbox, sequence) || !outbox_has_room(outbox))
                        return false;
                answer_request(outbox, pending, now);
        }
        return true;
}

/* 4. The batch */

bool outbox_publish(struct outbox *outbox, struct now now) {
        struct batch *batch = outbox->batch;
        struct histogram *latencies = &outbox->counters->latencies[LATENCY_REQUEST];
        size_t first = batch->n_replies_published;
        bool is_published = publish_replies(outbox, now) &&
                            (!outbox_is_waiting(outbox) || publish_notifications(outbox, UINT64_MAX));

        work_clock_charge(outbox->clock, &batch->work_ns); /* one reading of the clock for all replies */
        for (; first < batch->n_replies_published; first++)
                histogram_add(latencies, outbox->clock->read_ns - batch->replies[first].arrived_ns);
        if (is_published && outbox->backend)
                outbox->backend->end_batch(outbox);
        return is_published;
}
