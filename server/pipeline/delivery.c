/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/delivery.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/time_units.h"
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
 * the store's session is full, which clients can cause. Without the timeout the store would stay
 * full, and would execute no request any more.
 */
#define DELIVERED_TIMEOUT_NS NS_PER_S

static void count_notifications(struct delivery *delivery, const struct pending_notification *notification,
                                size_t n) {
        if (notification->entry)
                delivery->publisher->counters->n_notifications_set += n;
        else
                delivery->publisher->counters->n_notifications_deleted += n;
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
static int n_copies(const struct delivery *delivery, const struct pending_notification *notification,
                    const struct recipient *recipient) {
        const struct hooks *hooks = delivery->hooks;
        const struct registration *registration;

        if (!hooks)
                return 1;

        registration = engine_registration_of_connection(delivery->state->engine, recipient->connection);
        return hooks->notification(hooks->userdata,
                                   registration ? registration->client_name : recipient->client,
                                   notification->key);
}

/* 1. A plain broker */

/* Record the message id: its PUBACK says whether the notification had a subscriber. */
static void note_registration(struct delivery *delivery, struct slice client, struct slice key,
                              uint16_t id) {
        struct registration *registration = engine_find_registration(delivery->state->engine, client, key);

        if (registration)
                inflight_add(&delivery->inflight, registration, id);
}

static void publish_to_client(struct delivery *delivery, const struct pending_notification *notification,
                              struct slice client, struct message message) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        uint16_t id;

        if (set_topic(&message, &topic, client, notification->key) < 0) {
                publisher_count_out_of_memory(delivery->publisher);
                return;
        }
        if (publisher_send(delivery->publisher, &message, &id) < 0)
                return;

        note_registration(delivery, client, notification->key, id);
        count_notifications(delivery, notification, 1);
}

/* Skip connections: they ended with the broker that had the plugin. */
static void publish_messages(struct delivery *delivery, const struct pending_notification *notification,
                             const struct message *message, struct slice *recipients) {
        struct recipient recipient;

        while (publisher_has_room(delivery->publisher) && recipients_next(recipients, &recipient)) {
                int n = recipient.connection == 0 ? n_copies(delivery, notification, &recipient) : 0;

                for (; n > 0; n--)
                        publish_to_client(delivery, notification, recipient.client, *message);
        }
}

/* 2. The plugin */

/*
 * Return the number of recipients that fit in the packet of a frame with this key and payload; at
 * least 1.
 */
static size_t n_recipients_max(const struct delivery *delivery, const struct message *message,
                               struct slice key) {
        uint64_t max_bytes = engine_config(delivery->state->engine)->packets.max_bytes;
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
static size_t take_recipients(const struct delivery *delivery,
                              const struct pending_notification *notification, struct slice *recipients,
                              size_t n_max, size_t n_bytes_without_client, struct buf *connections,
                              size_t *ret_broker_bytes) {
        struct slice rest = *recipients;
        struct recipient recipient;
        size_t n = 0, n_bytes = 0;

        while (n < n_max) {
                size_t copy_bytes = n_bytes_without_client;

                if (!recipients_next(&rest, &recipient)) { /* in a damaged row, some bytes may remain */
                        *recipients = rest;
                        break;
                }
                copy_bytes += 2 * recipient.client_length;
                if (n > 0 && n_bytes + copy_bytes > BROKER_BYTES_MAX)
                        break;
                for (int i = n_copies(delivery, notification, &recipient); i > 0; i--, n++) {
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
static void kick_recipients(struct delivery *delivery, const struct companion_frame *frame) {
        for (size_t i = 0; i < companion_frame_n_recipients(frame); i++)
                publisher_send_connection(delivery->publisher, SLICE_LITERAL(COMPANION_KICK),
                                          companion_frame_recipient(frame, i));
}

/*
 * message: the notification, with the payload of the frame. Returns the result of
 * transport.publish(), or -ENOMEM.
 */
static int send_frame(struct delivery *delivery, const struct companion_frame *frame,
                      const struct message *message) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct message packet = *message;
        uint16_t id;
        int r;

        companion_frame_append(&payload, frame);
        if (buf_failed(&payload)) {
                publisher_count_out_of_memory(delivery->publisher);
                return -ENOMEM;
        }

        packet.topic = SLICE_LITERAL(COMPANION_DELIVER);
        packet.payload = buf_slice(&payload);
        r = publisher_send(delivery->publisher, &packet, &id);
        if (r == -EMSGSIZE)
                kick_recipients(delivery, frame);
        return r;
}

/*
 * Publish one frame to the first recipients, and remove them from the list. If memory is short,
 * remove all recipients.
 */
static void publish_frame(struct delivery *delivery, const struct pending_notification *notification,
                          const struct message *message, struct slice *recipients, int64_t now_ns) {
        CLEANUP(buf_deinit) struct buf connections = { 0 };
        size_t n, n_max = n_recipients_max(delivery, message, notification->key);
        size_t copy_bytes = message->payload.length + topic_notify_length(0, notification->key.length) +
                            BROKER_BYTES_OVERHEAD;
        struct message packet = *message;
        struct companion_frame frame = {
                .sequence = notification->sequence,
                .index = delivery->n_recipients_published,
                .wants_acknowledgement = delivery->is_stored,
                .key = notification->key,
                .payload = message->payload,
        };

        n = take_recipients(delivery, notification, recipients, n_max, copy_bytes, &connections,
                            &packet.broker_bytes);
        delivery->n_recipients_published += (uint32_t)n;
        if (buf_failed(&connections)) {
                publisher_count_out_of_memory(delivery->publisher);
                recipients->length = 0;
                return;
        }

        frame.is_last = recipients->length == 0;
        frame.recipients = buf_slice(&connections);
        if (frame.wants_acknowledgement)
                delivery->deadline_ns = now_ns + DELIVERED_TIMEOUT_NS;
        if (send_frame(delivery, &frame, &packet) < 0)
                return;
        count_notifications(delivery, notification, n);
}

/* 3. One change after the other */

/* The notifications up to this one are published: continue with the first recipient of the next. */
static void continue_after(struct delivery *delivery, uint64_t sequence) {
        delivery->published_sequence = sequence;
        delivery->recipients_offset = 0;
        delivery->n_recipients_published = 0;
}

/* Count what is not published: one message for each client of a plain broker, or one frame. */
static void count_dropped(struct delivery *delivery, struct slice recipients) {
        struct recipient recipient;

        while (recipients_next(&recipients, &recipient)) {
                publisher_count_out_of_memory(delivery->publisher);
                if (delivery->broker_kind == BROKER_WITH_PLUGIN)
                        return;
        }
}

/* The next notification is published to all its recipients. */
static void end_change(struct delivery *delivery, const struct pending_notification *notification) {
        continue_after(delivery, notification->sequence);
        if (!delivery->is_stored)
                state_deliver(delivery->state, notification->sequence);
}

/* Publish the notification to its remaining recipients while the transport has room. */
static void publish_change(struct delivery *delivery, const struct pending_notification *notification,
                           int64_t now_ns) {
        struct slice recipients = slice_skip(notification->recipients, delivery->recipients_offset);
        struct key_change change = { .version = notification->version, .entry = notification->entry };
        struct message message;

        if (encoder_notification(delivery->encoder, &change, &message) < 0) {
                count_dropped(delivery, recipients);
                end_change(delivery, notification);
                return;
        }

        if (delivery->broker_kind != BROKER_WITH_PLUGIN)
                publish_messages(delivery, notification, &message, &recipients);
        else /* test control can omit all recipients: then one frame without recipients is published */
                do
                        publish_frame(delivery, notification, &message, &recipients, now_ns);
                while (recipients.length > 0 && publisher_has_room(delivery->publisher));
        if (recipients.length == 0)
                end_change(delivery, notification);
        else
                delivery->recipients_offset = notification->recipients.length - recipients.length;
}

static const struct pending_notification *next_notification(const struct delivery *delivery) {
        return notification_queue_after(&delivery->state->notifications, delivery->published_sequence);
}

/*
 * PUBACKs have the order of the messages. So after notified_n_sent PUBACKs, the broker has received
 * the messages sent before. If there are no messages without PUBACK, it has received all of them.
 */
static void remove_acknowledged(struct delivery *delivery) {
        const struct publisher *publisher = delivery->publisher;
        bool is_all_acknowledged = publisher->n_acknowledged == publisher->n_sent;

        if (!delivery->is_serving || delivery->broker_kind != BROKER_PLAIN ||
            delivery->state->notifications.n_pending == 0 ||
            publisher->n_acknowledged < delivery->notified_n_sent)
                return;

        state_deliver(delivery->state,
                      is_all_acknowledged ? delivery->published_sequence : delivery->notified_sequence);
        delivery->notified_sequence = delivery->published_sequence;
        delivery->notified_n_sent = publisher->n_sent;
}

/* The plugin drops frames that precede HELLO, if it is to acknowledge them. */
static bool can_publish(const struct delivery *delivery) {
        return delivery->is_serving || delivery->broker_kind == BROKER_PLAIN ||
               (delivery->broker_kind == BROKER_WITH_PLUGIN && !delivery->is_stored);
}

bool delivery_publish(struct delivery *delivery, uint64_t sequence, int64_t now_ns) {
        const struct pending_notification *next;

        if (!can_publish(delivery) || delivery->state->notifications.n_pending == 0)
                return true;

        while ((next = next_notification(delivery)) && next->sequence <= sequence) {
                if (!publisher_has_room(delivery->publisher))
                        return false;
                publish_change(delivery, next, now_ns);
        }
        remove_acknowledged(delivery); /* no PUBACK follows if all recipients were skipped */
        return true;
}

bool delivery_is_waiting(const struct delivery *delivery) {
        return delivery->is_serving && next_notification(delivery);
}

/* 4. The broker */

void delivery_deinit(struct delivery *delivery) {
        inflight_deinit(&delivery->inflight);
}

bool delivery_is_full(const struct delivery *delivery) {
        const struct notification_queue *queue = &delivery->state->notifications;

        return queue->n_pending >= DELIVERY_PENDING_MAX || queue->n_bytes >= DELIVERY_PENDING_BYTES_MAX;
}

void delivery_serve(struct delivery *delivery, enum broker_kind broker_kind) {
        if (broker_kind == BROKER_WITH_PLUGIN || delivery->broker_kind == BROKER_WITH_PLUGIN)
                continue_after(delivery, delivery->state->delivered);
        delivery->broker_kind = broker_kind;
        delivery->is_serving = true;
        remove_acknowledged(delivery); /* PUBACKs may have arrived before, and no other may follow */
}

void delivery_pause(struct delivery *delivery) {
        delivery->is_serving = false;
        delivery->deadline_ns = INT64_MAX;
}

/* Return whether a notification is published whose delivery is unknown. */
static bool is_delivery_awaited(const struct delivery *delivery) {
        return delivery->published_sequence > delivery->state->delivered;
}

void delivery_skip_to(struct delivery *delivery, uint64_t sequence) {
        state_deliver(delivery->state, sequence);
        if (sequence > delivery->published_sequence)
                continue_after(delivery, sequence);
}

void delivery_delivered(struct delivery *delivery, uint64_t sequence) {
        if (sequence <= delivery->published_sequence)
                state_deliver(delivery->state, sequence);
        if (!is_delivery_awaited(delivery))
                delivery->deadline_ns = INT64_MAX;
}

/*
 * Send one more frame for the last published change, marked as its last frame, without recipients.
 * The plugin replies with DELIVERED. If no change is published completely, the next frame sets the
 * deadline.
 */
void delivery_tick(struct delivery *delivery, struct now now) {
        const struct companion_frame end = { .sequence = delivery->published_sequence,
                                             .is_last = true,
                                             .wants_acknowledgement = true };
        const struct message message = { .qos = 1 };

        if (now.mono_ns < delivery->deadline_ns)
                return;

        delivery->deadline_ns = INT64_MAX;
        if (!is_delivery_awaited(delivery))
                return;
        delivery->deadline_ns = now.mono_ns + DELIVERED_TIMEOUT_NS;
        send_frame(delivery, &end, &message);
}

struct registration *delivery_acknowledged(struct delivery *delivery, uint16_t id) {
        remove_acknowledged(delivery);
        return inflight_take(&delivery->inflight, id);
}
