/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publish the outbox. A plain broker gets one message for each watcher, on the watcher's notify
 * topic. The plugin gets frames (common/protocol/companion_frame.h), each for many watchers with
 * one copy of the payload.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "protocol/companion_frame.h"
#include "protocol/topics.h"
#include "state/recipients.h"

/*
 * Limits to the recipients of one frame. The broker first makes one copy of the notification for
 * each recipient of the frame, and then writes the copies. It reads no other packet meanwhile, but
 * it does between two frames. FRAME_RECIPIENTS_MAX and BROKER_BYTES_MAX keep this time short. With
 * 1,000 watchers, small frames also notify the last watcher earlier than one large frame: the
 * copies fit in the processor's cache.
 *
 * A frame has at least one recipient, however large its copy. Each frame contains the value again:
 * with 1 MiB in place of BROKER_BYTES_MAX, a value of 1 MB for 100 watchers takes the broker three
 * times as long.
 *
 * BROKER_BYTES_OVERHEAD: the memory of one copy beside its topic and payload.
 */
#define FRAME_RECIPIENTS_MAX  100
#define BROKER_BYTES_MAX      ((size_t)4 << 20)
#define BROKER_BYTES_OVERHEAD 1024

/*
 * Timeout for DELIVERED, measured from the last frame. The broker drops DELIVERED if the queue of
 * the store's session is full, which clients can cause. Without the timeout the outbox would stay
 * full, and the store would execute no request any more.
 */
#define DELIVERED_TIMEOUT_NS NS_PER_S

static void count_notifications(struct pipeline *pipeline, const struct pending_notification *notification,
                                size_t n) {
        if (notification->entry)
                pipeline->counters.n_notifications_set += n;
        else
                pipeline->counters.n_notifications_deleted += n;
}

/*
 * Set the topic of the message to the client's notify topic for the key. Returns 0 or -ENOMEM. The
 * message borrows the topic, which is NUL-terminated.
 */
static int set_topic(struct message *message, struct buf *topic, struct slice client, struct slice key) {
        buf_reset(topic);
        topic_append_notify(topic, client, key);
        buf_append(topic, "", 1);
        if (buf_failed(topic))
                return -ENOMEM;

        message->topic = (struct slice){ topic->data, topic->length - 1 };
        return 0;
}

/* Return how many times to publish the notification to this recipient. */
static int n_copies(const struct pipeline *pipeline, const struct pending_notification *notification,
                    const struct recipient *recipient) {
        CLEANUP(buf_deinit) struct buf client = { 0 }, key = { 0 };
        const struct hooks *hooks = pipeline->hooks;
        const struct registration *registration;

        if (!hooks)
                return 1;

        buf_append_slice(&client, recipient->client);
        registration = engine_registration_of_connection(pipeline->state->engine, recipient->connection);
        if (registration)
                registration_append_names(registration, &client, &key);
        return hooks->notification(hooks->userdata, buf_slice(&client), notification->key);
}

/* 1. A plain broker */

/* Record the message id: its PUBACK says whether the notification had a subscriber. */
static void note_registration(struct pipeline *pipeline, struct slice client, struct slice key,
                              uint16_t id) {
        struct registration *registration = engine_find_registration(pipeline->state->engine, client, key);

        if (registration)
                inflight_add(&pipeline->inflight, registration, id);
}

static void publish_to_client(struct pipeline *pipeline, const struct pending_notification *notification,
                              struct slice client, struct message message) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        uint16_t id;

        if (set_topic(&message, &topic, client, notification->key) < 0) {
                pipeline_count_out_of_memory(pipeline);
                return;
        }
        if (publish_message(pipeline, &message, &id) < 0)
                return;

        note_registration(pipeline, client, notification->key, id);
        count_notifications(pipeline, notification, 1);
}

/* Skip connections: they ended with the broker that had the plugin. */
static void publish_messages(struct pipeline *pipeline, const struct pending_notification *notification,
                             const struct message *message, struct slice *recipients) {
        struct recipient recipient;

        while (publish_has_room(pipeline) && recipients_next(recipients, &recipient)) {
                int n = recipient.connection == 0 ? n_copies(pipeline, notification, &recipient) : 0;

                for (; n > 0; n--)
                        publish_to_client(pipeline, notification, recipient.client, *message);
        }
}

/* 2. The plugin */

/*
 * Return the number of recipients that fit in the packet of a frame with this key and payload; at
 * least 1.
 */
static size_t n_recipients_max(const struct pipeline *pipeline, const struct message *message,
                               struct slice key) {
        uint64_t max_bytes = engine_config(pipeline->state->engine)->packets.max_bytes;
        struct message frame = *message;
        uint64_t n_bytes, n_max;

        /*
         * The packet without recipients. Its length field counts with its maximum size: recipients
         * may lengthen it.
         */
        frame.topic = SLICE_LITERAL(COMPANION_DELIVER);
        n_bytes = message_packet_size(&frame) + (MESSAGE_VARINT_MAX - 1) + COMPANION_FRAME_HEADER_SIZE +
                  key.length;
        n_max = n_bytes < max_bytes ? (max_bytes - n_bytes) / COMPANION_RECIPIENT_SIZE : 0;
        if (n_max > FRAME_RECIPIENTS_MAX)
                n_max = FRAME_RECIPIENTS_MAX;
        return n_max > 0 ? (size_t)n_max : 1;
}

/*
 * Remove the recipients of the next frame from the list, and append their connections. Returns
 * their number. *ret_broker_bytes: the memory that their copies need in the broker.
 */
static size_t take_recipients(const struct pipeline *pipeline,
                              const struct pending_notification *notification, struct slice *recipients,
                              size_t n_max, size_t n_bytes_without_client, struct buf *connections,
                              size_t *ret_broker_bytes) {
        struct slice rest = *recipients;
        struct recipient recipient;
        size_t n = 0, n_bytes = 0;

        while (n < n_max && recipients_next(&rest, &recipient)) {
                size_t copy_bytes = n_bytes_without_client + 2 * recipient.client_length;

                if (n > 0 && n_bytes + copy_bytes > BROKER_BYTES_MAX)
                        break;
                for (int i = n_copies(pipeline, notification, &recipient); i > 0; i--, n++) {
                        n_bytes += copy_bytes;
                        companion_recipient_append(connections, recipient.connection);
                }
                *recipients = rest;
        }
        *ret_broker_bytes = n_bytes;
        return n;
}

/*
 * Kick the recipients of a notification that is too large: otherwise they would wait for it
 * forever.
 */
static void kick_recipients(struct pipeline *pipeline, const struct companion_frame *frame) {
        for (size_t i = 0; i < companion_frame_n_recipients(frame); i++)
                publish_connection(pipeline, SLICE_LITERAL(COMPANION_KICK),
                                   companion_frame_recipient(frame, i));
}

/*
 * message: the notification, with the payload of the frame. Returns the result of
 * transport.publish(), or -ENOMEM.
 */
static int send_frame(struct pipeline *pipeline, const struct companion_frame *frame,
                      const struct message *message) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct message packet = *message;
        uint16_t id;
        int r;

        companion_frame_append(&payload, frame);
        if (buf_failed(&payload)) {
                pipeline_count_out_of_memory(pipeline);
                return -ENOMEM;
        }

        packet.topic = SLICE_LITERAL(COMPANION_DELIVER);
        packet.payload = buf_slice(&payload);
        r = publish_message(pipeline, &packet, &id);
        if (r == -EMSGSIZE)
                kick_recipients(pipeline, frame);
        return r;
}

/*
 * Publish one frame to the first recipients, and remove them from the list. If memory is short,
 * remove all recipients.
 */
static void publish_frame(struct pipeline *pipeline, const struct pending_notification *notification,
                          const struct message *message, struct slice *recipients) {
        CLEANUP(buf_deinit) struct buf connections = { 0 };
        size_t n, n_max = n_recipients_max(pipeline, message, notification->key);
        size_t copy_bytes = message->payload.length + topic_notify_length(0, notification->key.length) +
                            BROKER_BYTES_OVERHEAD;
        struct message packet = *message;
        struct companion_frame frame = {
                .sequence = notification->sequence,
                .index = pipeline->outbox.n_recipients_published,
                .wants_acknowledgement = pipeline->storage,
                .key = notification->key,
                .payload = message->payload,
        };

        n = take_recipients(pipeline, notification, recipients, n_max, copy_bytes, &connections,
                            &packet.broker_bytes);
        pipeline->outbox.n_recipients_published += (uint32_t)n;
        if (buf_failed(&connections)) {
                pipeline_count_out_of_memory(pipeline);
                recipients->length = 0;
                return;
        }

        frame.is_last = recipients->length == 0;
        frame.recipients = buf_slice(&connections);
        if (frame.wants_acknowledgement)
                pipeline->delivered_deadline_ns = pipeline->execution_start_ns + DELIVERED_TIMEOUT_NS;
        if (send_frame(pipeline, &frame, &packet) < 0)
                return;
        count_notifications(pipeline, notification, n);
}

/* 3. One change after the other */

/* Count what is not published: one message for each client of a plain broker, or one frame. */
static void count_dropped(struct pipeline *pipeline, struct slice recipients) {
        struct recipient recipient;

        while (recipients_next(&recipients, &recipient)) {
                pipeline_count_out_of_memory(pipeline);
                if (pipeline->last_broker_kind == BROKER_WITH_PLUGIN)
                        return;
        }
}

/* Without a storage, a notification that is published counts as delivered. */
static void end_change(struct pipeline *pipeline) {
        outbox_next_published(&pipeline->outbox, pipeline->state);
        if (!pipeline->storage)
                state_deliver(pipeline->state, pipeline->outbox.published_sequence);
}

/* Publish the notification to its remaining recipients while the transport has room. */
static void publish_change(struct pipeline *pipeline, const struct pending_notification *notification) {
        struct outbox *outbox = &pipeline->outbox;
        struct slice recipients = { notification->recipients.data + outbox->recipients_offset,
                                    notification->recipients.length - outbox->recipients_offset };
        struct key_change change = { .version = notification->version, .entry = notification->entry };
        struct message message;

        if (encoder_notification(&pipeline->encoder, &change, &message) < 0) {
                count_dropped(pipeline, recipients);
                end_change(pipeline);
                return;
        }

        if (pipeline->last_broker_kind != BROKER_WITH_PLUGIN)
                publish_messages(pipeline, notification, &message, &recipients);
        else /* test control can omit all recipients: then one frame without recipients is published */
                do
                        publish_frame(pipeline, notification, &message, &recipients);
                while (recipients.length > 0 && publish_has_room(pipeline));
        outbox->recipients_offset = notification->recipients.length - recipients.length;
        if (recipients.length == 0)
                end_change(pipeline);
}

/*
 * Notifications wait until the first broker's kind is known. Later, the notifications of a batch
 * are published even while the connection is down: the transport keeps the messages, and after the
 * next WELCOME the outbox is published again.
 */
static bool can_publish(const struct pipeline *pipeline) {
        return pipeline->broker_kind != BROKER_UNKNOWN ||
               (pipeline->last_broker_kind != BROKER_UNKNOWN && !batch_is_empty(&pipeline->batch));
}

bool notifications_publish(struct pipeline *pipeline, uint64_t sequence) {
        const struct pending_notification *next;

        if (!can_publish(pipeline))
                return true;

        while ((next = outbox_next(&pipeline->outbox, pipeline->state)) && next->sequence <= sequence) {
                if (!publish_has_room(pipeline))
                        return false;
                publish_change(pipeline, next);
        }
        notifications_acknowledged(pipeline); /* no PUBACK follows if all recipients were skipped */
        return true;
}

bool notifications_are_waiting(const struct pipeline *pipeline) {
        return can_publish(pipeline) && outbox_next(&pipeline->outbox, pipeline->state);
}

/* 4. Deliveries */

/* Return whether a notification is published whose delivery is unknown. */
static bool is_delivery_awaited(const struct pipeline *pipeline) {
        return pipeline->outbox.published_sequence > pipeline->state->delivered;
}

void notifications_delivered(struct pipeline *pipeline, uint64_t sequence) {
        if (sequence <= pipeline->outbox.published_sequence)
                outbox_deliver(&pipeline->outbox, pipeline->state, sequence);
        if (!is_delivery_awaited(pipeline))
                pipeline->delivered_deadline_ns = INT64_MAX;
}

/*
 * Send one more frame for the last published change, marked as its last frame, without recipients.
 * The plugin replies with DELIVERED.
 */
void notifications_delivered_timed_out(struct pipeline *pipeline, struct now now) {
        const struct companion_frame end = { .sequence = pipeline->outbox.published_sequence,
                                             .is_last = true,
                                             .wants_acknowledgement = true };
        const struct message message = { .qos = 1 };

        pipeline->delivered_deadline_ns = INT64_MAX;
        if (!is_delivery_awaited(pipeline))
                return; /* no change is published completely: publish_frame() sets the deadline with the next frame */

        pipeline->delivered_deadline_ns = now.mono_ns + DELIVERED_TIMEOUT_NS;
        send_frame(pipeline, &end, &message);
}

/*
 * PUBACKs have the order of the messages. So after notified_n_sent PUBACKs, the broker has received
 * the messages sent before. If there are no messages without PUBACK, it has received all of them.
 */
void notifications_acknowledged(struct pipeline *pipeline) {
        struct outbox *outbox = &pipeline->outbox;

        if (pipeline->broker_kind != BROKER_PLAIN || pipeline->state->notifications.n_pending == 0 ||
            pipeline->n_acknowledged < pipeline->notified_n_sent)
                return;

        outbox_deliver(outbox, pipeline->state,
                       pipeline->n_acknowledged < pipeline->n_sent ? pipeline->notified_sequence
                                                                   : outbox->published_sequence);
        pipeline->notified_sequence = outbox->published_sequence;
        pipeline->notified_n_sent = pipeline->n_sent;
}
