/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/delivery.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "protocol/topics.h"
#include "state/recipients.h"

/* The memory of one copy of a notification in the broker, beside its topic and payload. */
#define BROKER_BYTES_OVERHEAD 1024

/*
 * Timeout for `delivered` in a frame of the plugin, measured from the last notification. The broker
 * drops frames of the plugin if the queue of the store's session is full. Without the timeout the
 * store would stay full, and would execute no request any more.
 */
#define DELIVERED_TIMEOUT_NS NS_PER_S

static void count_notifications(struct delivery *delivery, const struct pending_notification *notification,
                                size_t n) {
        if (notification->entry)
                delivery->publisher->counters->n_notifications_set += n;
        else
                delivery->publisher->counters->n_notifications_deleted += n;
}

/* Return how many times to publish the notification to this recipient. */
static int n_copies(const struct delivery *delivery, const struct pending_notification *notification,
                    const struct recipient *recipient) {
        const struct hooks *hooks = delivery->hooks;
        const struct registration *registration;

        if (!hooks)
                return 1;

        registration = engine_registration_of_connection(delivery->state->engine, recipient->connection);
        return hooks->notification(
                hooks->userdata, registration ? registration->client_name : recipient->client, notification);
}

/* 1. A plain broker */

static void publish_to_client(struct delivery *delivery, const struct pending_notification *notification,
                              struct slice client, struct message message) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct registration *registration;
        uint16_t id;

        topic_append_notify(&topic, client, notification->key);
        if (!buf_text(&topic)) { /* the transport needs the NUL */
                publisher_count_out_of_memory(delivery->publisher);
                return;
        }
        message.topic = buf_slice(&topic);
        if (publisher_send(delivery->publisher, &message, &id) < 0)
                return;

        registration = engine_find_registration(delivery->state->engine, client, notification->key);
        if (registration) /* the PUBACK says whether the notification had a subscriber */
                inflight_add(&delivery->inflight, registration, id);
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
 * Remove the recipients of the next record from the list, at least one, and append their
 * connections. Returns the memory that their copies of the message need in the broker.
 */
static size_t take_recipients(const struct delivery *delivery,
                              const struct pending_notification *notification, const struct message *message,
                              struct slice *recipients, struct buf *connections) {
        size_t n_max = frames_out_n_recipients_max(delivery->frames_out, notification->key, message);
        struct slice rest = *recipients;
        struct recipient recipient;
        size_t n = 0, n_bytes = 0;

        while (n == 0 || n < n_max) {
                size_t copy_bytes;

                if (!recipients_next(&rest, &recipient)) { /* in a damaged row, some bytes may remain */
                        *recipients = rest;
                        break;
                }
                copy_bytes = message->payload.length + BROKER_BYTES_OVERHEAD +
                             topic_notify_length(recipient.client_length, notification->key.length);
                if (n > 0 && n_bytes + copy_bytes > FRAMES_OUT_BROKER_BYTES_MAX)
                        break;
                for (int i = n_copies(delivery, notification, &recipient); i > 0; i--, n++) {
                        n_bytes += copy_bytes;
                        frame_recipient_append(connections, recipient.connection);
                }
                *recipients = rest;
        }
        return n_bytes;
}

/* Add one record for the first recipients to the frames, and remove them from the list. */
static void add_record(struct delivery *delivery, const struct pending_notification *notification,
                       const struct message *message, struct slice *recipients) {
        CLEANUP(buf_deinit) struct buf connections = { 0 };
        struct frame_notification record = {
                .sequence = notification->sequence,
                .index = delivery->n_recipients_published,
                .key = notification->key,
        };
        size_t broker_bytes = take_recipients(delivery, notification, message, recipients, &connections);

        if (buf_failed(&connections)) {
                frames_out_fail(delivery->frames_out);
                return;
        }

        record.is_last = recipients->length == 0;
        record.recipients = buf_slice(&connections);
        delivery->n_recipients_published += (uint32_t)frame_n_recipients(&record);
        if (frames_out_notification(delivery->frames_out, &record, message, broker_bytes) == 0)
                count_notifications(delivery, notification, frame_n_recipients(&record));
        else /* it is too large: the recipients would wait for it forever */
                for (size_t i = 0; i < frame_n_recipients(&record); i++)
                        frames_out_kick(delivery->frames_out, frame_recipient(&record, i));
}

/* 3. One change after the other */

/* The notifications up to this one are published: continue with the first recipient of the next. */
static void continue_after(struct delivery *delivery, uint64_t sequence) {
        delivery->published_sequence = sequence;
        delivery->recipients_offset = 0;
        delivery->n_recipients_published = 0;
}

/*
 * Memory is short for the notification. A plain broker gets none: count one message for each
 * client. The plugin gets it after the next HELLO.
 */
static void drop_change(struct delivery *delivery, const struct pending_notification *notification,
                        struct slice recipients) {
        struct recipient recipient;

        if (delivery->broker_kind == BROKER_WITH_PLUGIN) {
                frames_out_fail(delivery->frames_out);
                return;
        }
        while (recipients_next(&recipients, &recipient))
                publisher_count_out_of_memory(delivery->publisher);
        continue_after(delivery, notification->sequence);
}

/* Publish the notification to its remaining recipients while the transport has room. */
static void publish_change(struct delivery *delivery, const struct pending_notification *notification,
                           int64_t now_ns) {
        struct slice recipients = slice_skip(notification->recipients, delivery->recipients_offset);
        struct key_change change = { .version = notification->version, .entry = notification->entry };
        struct message message;

        if (encoder_notification(delivery->encoder, &change, &message) < 0) {
                drop_change(delivery, notification, recipients);
                return;
        }

        if (delivery->broker_kind == BROKER_WITH_PLUGIN) {
                do /* test control can omit all recipients: then one record without recipients is added */
                        add_record(delivery, notification, &message, &recipients);
                while (recipients.length > 0 && publisher_has_room(delivery->publisher));
                delivery->deadline_ns = now_ns + DELIVERED_TIMEOUT_NS;
        } else {
                publish_messages(delivery, notification, &message, &recipients);
        }
        if (recipients.length == 0)
                continue_after(delivery, notification->sequence);
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

/* Return whether the frames to the plugin have failed: the next HELLO repeats the notifications. */
static bool has_failed(const struct delivery *delivery) {
        return delivery->broker_kind == BROKER_WITH_PLUGIN && delivery->frames_out->has_failed;
}

/* The plugin drops frames that precede HELLO. */
static bool can_publish(const struct delivery *delivery) {
        return delivery->is_serving || delivery->broker_kind == BROKER_PLAIN;
}

bool delivery_publish(struct delivery *delivery, uint64_t sequence, int64_t now_ns) {
        const struct pending_notification *next;

        if (!can_publish(delivery) || delivery->state->notifications.n_pending == 0)
                return true;

        while (!has_failed(delivery) && (next = next_notification(delivery)) && next->sequence <= sequence) {
                if (!publisher_has_room(delivery->publisher))
                        return false;
                publish_change(delivery, next, now_ns);
        }
        remove_acknowledged(delivery); /* no PUBACK follows if all recipients were skipped */
        return true;
}

bool delivery_is_waiting(const struct delivery *delivery) {
        return delivery->is_serving && !has_failed(delivery) && next_notification(delivery);
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

/* If no change is published completely, the next notification sets the deadline. */
void delivery_tick(struct delivery *delivery, struct now now) {
        if (now.mono_ns < delivery->deadline_ns)
                return;

        delivery->deadline_ns = INT64_MAX;
        if (!is_delivery_awaited(delivery))
                return;
        delivery->deadline_ns = now.mono_ns + DELIVERED_TIMEOUT_NS;
        frames_out_ask(delivery->frames_out);
}

struct registration *delivery_acknowledged(struct delivery *delivery, uint16_t id) {
        remove_acknowledged(delivery);
        return inflight_take(&delivery->inflight, id);
}
