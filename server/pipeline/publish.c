/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/internal.h"

#include <errno.h>

#include "base/cleanup.h"
#include "codec/companion_messages.h"
#include "pipeline/hooks.h"
#include "protocol/topics.h"

/* A client id up to this length does not reduce the size of its notifications. */
#define ORDINARY_CLIENT_ID_MAX 128

static void cleanup_entry(struct entry **entry) {
        entry_unref(*entry);
}

static void publish_message(struct pipeline *pipeline, const struct pending_reply *pending,
                            struct message *message, struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        uint16_t id;

        pending_reply_address(pending, now.mono_ns, message);
        if (hooks)
                hooks->answer(hooks->userdata, pending->number, message, now);
        else
                sender_send(&pipeline->sender, message, &id);
}

void publish_fault(struct pipeline *pipeline, const struct pending_reply *pending, enum request_fault fault,
                   struct slice value, struct now now) {
        struct message message;

        if (encoder_fault(&pipeline->encoder, fault, value, &message) < 0)
                sender_out_of_memory(&pipeline->sender);
        else
                publish_message(pipeline, pending, &message, now);
}

static void publish_track_change(struct sender *sender, const struct track_change *track_change) {
        struct slice topic = SLICE_LITERAL(COMPANION_UNTRACK);

        if (track_change->is_disconnected)
                topic = SLICE_LITERAL(COMPANION_KICK);
        else if (track_change->is_tracked)
                topic = SLICE_LITERAL(COMPANION_TRACK);
        sender_send_connection(sender, topic, track_change->connection);
}

static void publish_reply(struct pipeline *pipeline, const struct pending_reply *pending, struct now now) {
        struct message message;

        if (pending_reply_is_expired(pending, now.mono_ns))
                pipeline->counters.n_expired++;
        else if (encoder_reply(&pipeline->encoder, &pending->reply, &message) < 0)
                sender_out_of_memory(&pipeline->sender);
        else
                publish_message(pipeline, pending, &message, now);
}

/* Make the message one that the plugin delivers. Topic and correlation are borrowed. */
static void address_delivery(struct message *message, struct slice topic,
                             const struct companion_pair *correlation) {
        message->topic = SLICE_LITERAL(COMPANION_DELIVER);
        message->response_topic = topic;
        message->correlation_data =
                (struct slice){ (const uint8_t *)correlation->text, correlation->length };
}

/*
 * `message` has the parts that all notifications of one change share. A client whose notification is too large, because its id
 * is very long, would wait for it forever: disconnect it instead.
 */
static void publish_notification(struct sender *sender, struct registration *registration, bool is_set,
                                 struct message message) {
        struct slice topic = { (const uint8_t *)registration->topic, registration->topic_length };
        struct companion_pair correlation;
        uint16_t id;
        int r;

        message.topic = topic;
        if (sender->direct) {
                correlation = companion_pair(registration->connection, ++sender->last_sequence);
                address_delivery(&message, topic, &correlation);
        }

        r = sender_send(sender, &message, &id);
        if (r == -EMSGSIZE && sender->direct)
                sender_send_connection(sender, SLICE_LITERAL(COMPANION_KICK), registration->connection);
        if (r < 0)
                return;
        if (is_set)
                sender->counters->n_notifications_set++;
        else
                sender->counters->n_notifications_deleted++;
        if (sender->notified)
                sender->notified(sender->userdata, registration, id);
}

/* Size of the packet without the parts that are added later. These may lengthen the packet's length fields. */
static uint64_t size_without_parts(const struct message *message) {
        return message_packet_size(message) + 2 * (MESSAGE_VARINT_MAX - 1);
}

static int measure_notification(struct encoder *encoder, uint64_t *ret_n_bytes) {
        static const struct version longest = { INT64_MAX, INT32_MAX };
        const struct companion_pair correlation = companion_pair(UINT64_MAX, UINT64_MAX);
        CLEANUP(cleanup_entry) struct entry *entry = NULL;
        struct key_change change = { .version = longest };
        struct message message;
        int r;

        r = entry_new(&entry, SLICE_LITERAL(""), SLICE_LITERAL(""), longest, NULL);
        if (r < 0)
                return r;
        change.entry = entry;
        r = encoder_notification(encoder, &change, &message);
        if (r < 0)
                return r;

        address_delivery(&message, SLICE_LITERAL(""), &correlation);
        *ret_n_bytes = size_without_parts(&message) - packet_blob_length(entry_value(entry).length) +
                       topic_notify_length(ORDINARY_CLIENT_ID_MAX, 0);
        return 0;
}

static int measure_reply(struct encoder *encoder, uint64_t *ret_n_bytes) {
        struct reply reply = { .outcome = OUTCOME_DONE,
                               .has_version = true,
                               .version = { INT64_MAX, INT32_MAX } };
        struct message message;
        int r;

        r = encoder_reply(encoder, &reply, &message);
        if (r < 0)
                return r;

        message.correlation_data = SLICE_LITERAL("");
        message.has_expiry = true;
        *ret_n_bytes = size_without_parts(&message) - message.payload.length;
        return 0;
}

int publish_packet_limits(struct encoder *encoder, uint64_t max_bytes, struct packet_limits *ret_limits) {
        struct packet_limits limits = { .max_bytes = max_bytes };
        int r;

        r = measure_notification(encoder, &limits.notification_bytes);
        if (r == 0)
                r = measure_reply(encoder, &limits.reply_bytes);
        if (r < 0)
                return r;

        *ret_limits = limits;
        return 0;
}

static int n_deliveries(const struct pipeline *pipeline, const struct registration *registration) {
        const struct hooks *hooks = pipeline->hooks;

        return hooks ? hooks->notification(hooks->userdata, registration) : 1;
}

static bool publish_track_changes(struct batch *batch, struct sender *sender) {
        const struct effects *effects = &batch->effects;

        while (batch->n_track_changes_published < effects->n_track_changes && sender_has_room(sender))
                publish_track_change(sender, &effects->track_changes[batch->n_track_changes_published++]);
        return batch->n_track_changes_published == effects->n_track_changes;
}

/*
 * Publish the batch's first n_publishable notifications. After a failed commit the batch has fewer than a reply counts.
 * Notifications of one change follow each other, so the shared parts are encoded once.
 */
static bool publish_notifications(struct pipeline *pipeline, size_t n_publishable) {
        struct batch *batch = &pipeline->batch;
        const struct effects *effects = &batch->effects;
        size_t encoded = SIZE_MAX;
        struct message message;

        if (n_publishable > effects->n_notifications)
                n_publishable = effects->n_notifications;
        for (; batch->n_notifications_published < n_publishable && sender_has_room(&pipeline->sender);
             batch->n_notifications_published++) {
                const struct notification *notification =
                        &effects->notifications[batch->n_notifications_published];
                const struct key_change *change = &effects->changes[notification->change];

                if (notification->change != encoded &&
                    encoder_notification(&pipeline->encoder, change, &message) < 0) {
                        sender_out_of_memory(&pipeline->sender);
                        continue;
                }
                encoded = notification->change;
                for (int n = n_deliveries(pipeline, notification->registration); n > 0; n--)
                        publish_notification(&pipeline->sender, notification->registration, change->entry,
                                             message);
        }
        return batch->n_notifications_published >= n_publishable;
}

/* Count how long the replies from `first` on took. The clock is read once for all of them. */
static void count_durations(struct pipeline *pipeline, size_t first) {
        struct histogram *whole = &pipeline->counters.latencies[STAGE_WHOLE];
        const struct batch *batch = &pipeline->batch;
        int64_t now_ns;

        if (first == batch->n_replies_published || !pipeline->transport.clock_ns)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        for (; first < batch->n_replies_published; first++)
                histogram_add(whole, now_ns - batch->replies[first].arrived_ns);
}

static bool publish_replies(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->batch;
        size_t first = batch->n_replies_published;
        const struct pending_reply *pending;

        while ((pending = batch_next_reply(batch)) &&
               publish_notifications(pipeline, pending->n_notifications_before) &&
               sender_has_room(&pipeline->sender)) {
                batch->n_replies_published++;
                publish_reply(pipeline, pending, now);
        }
        count_durations(pipeline, first);
        return batch->n_replies_published == batch->n_replies;
}

/*
 * The order of publishing:
 * 1. Track changes: the plugin must know that a connection has a registration before the client's reply says so.
 * 2. Each reply after the notifications that were made before it. A client that has its reply knows that the watchers were
 *    notified, even if the process is killed right after. After the reply to STOP no notification follows.
 * 3. The rest of the notifications.
 */
bool publish_batch(struct pipeline *pipeline, struct now now) {
        struct batch *batch = &pipeline->batch;

        if (!publish_track_changes(batch, &pipeline->sender) || !publish_replies(pipeline, now) ||
            !publish_notifications(pipeline, batch->effects.n_notifications))
                return false;

        batch_reset(batch);
        return true;
}
