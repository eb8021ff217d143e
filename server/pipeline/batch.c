/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "codec/companion_messages.h"
#include "protocol/topics.h"

#define NS_PER_S INT64_C(1000000000)

/* Up to here the length of a client's id does not count against its notifications. */
#define ORDINARY_CLIENT_ID_MAX 128

/* Where an answer goes. Its texts lie in the batch's buffer, each followed by a NUL. */
struct reply_address {
        size_t response_topic_offset;
        size_t response_topic_length;
        size_t correlation_offset;
        size_t correlation_length;
        bool has_correlation;
        bool has_expiry;
        uint32_t expiry_s; /* what was left when it arrived */
        int64_t arrived_ns;
        enum verb verb;
        uint64_t number;               /* for the hooks */
        size_t n_notifications_before; /* of the batch: they leave before it */
};

static void cleanup_entry(struct entry **entry) {
        entry_unref(*entry);
}

void batch_deinit(struct batch *batch) {
        effects_deinit(&batch->effects);
        buf_deinit(&batch->texts);
        free(batch->reply_addresses);
        *batch = (struct batch){ 0 };
}

bool batch_is_empty(const struct batch *batch) {
        const struct effects *effects = &batch->effects;

        return effects->n_rows == 0 && effects->n_track_changes == 0 && effects->n_replies == 0 &&
               effects->n_notifications == 0;
}

static size_t keep_text(struct batch *batch, struct slice text) {
        size_t offset = batch->texts.length;

        buf_append_slice(&batch->texts, text);
        buf_append(&batch->texts, "", 1);
        return offset;
}

int batch_add_reply_address(struct batch *batch, const struct message *message, int64_t arrived_ns,
                            enum verb verb) {
        size_t n_bytes_before = batch->texts.length;
        struct reply_address reply_address;
        int r;

        r = array_reserve((void **)&batch->reply_addresses, &batch->reply_addresses_capacity,
                          batch->n_reply_addresses + 1, sizeof(*batch->reply_addresses));
        if (r < 0)
                return r;

        reply_address = (struct reply_address){
                .response_topic_offset = keep_text(batch, message->response_topic),
                .response_topic_length = message->response_topic.length,
                .correlation_offset = keep_text(batch, message->correlation_data),
                .correlation_length = message->correlation_data.length,
                .has_correlation = message->correlation_data.data,
                .has_expiry = message->has_expiry,
                .expiry_s = message->expiry_s,
                .arrived_ns = arrived_ns,
                .verb = verb,
        };
        if (buf_failed(&batch->texts)) {
                batch->texts.length = n_bytes_before;
                batch->texts.failed = false;
                return -ENOMEM;
        }

        batch->reply_addresses[batch->n_reply_addresses++] = reply_address;
        return 0;
}

static const struct reply_address *last_reply_address(const struct batch *batch) {
        return &batch->reply_addresses[batch->n_reply_addresses - 1];
}

void batch_number_reply(struct batch *batch, uint64_t number) {
        batch->reply_addresses[batch->n_reply_addresses - 1].number = number;
}

void batch_place_reply(struct batch *batch) {
        batch->reply_addresses[batch->n_reply_addresses - 1].n_notifications_before =
                batch->effects.n_notifications;
}

void batch_forget_reply(struct batch *batch) {
        batch->texts.length = last_reply_address(batch)->response_topic_offset;
        batch->n_reply_addresses--;
}

/* A test clock may have been reset since it arrived. */
static int64_t waited_s(const struct reply_address *reply_address, int64_t now_ns) {
        return now_ns > reply_address->arrived_ns ? (now_ns - reply_address->arrived_ns) / NS_PER_S : 0;
}

static bool is_over(const struct reply_address *reply_address, int64_t now_ns) {
        return reply_address->has_expiry && waited_s(reply_address, now_ns) >= reply_address->expiry_s;
}

bool batch_is_over(const struct batch *batch, int64_t now_ns) {
        return is_over(last_reply_address(batch), now_ns);
}

/* Puts what the envelope says into an answer. */
static void address(const struct batch *batch, const struct reply_address *reply_address, int64_t now_ns,
                    struct message *message) {
        const uint8_t *texts = batch->texts.data;

        message->topic = (struct slice){ texts + reply_address->response_topic_offset,
                                         reply_address->response_topic_length };
        if (reply_address->has_correlation)
                message->correlation_data = (struct slice){ texts + reply_address->correlation_offset,
                                                            reply_address->correlation_length };
        message->has_expiry = reply_address->has_expiry;
        if (reply_address->has_expiry)
                message->expiry_s = reply_address->expiry_s - (uint32_t)waited_s(reply_address, now_ns);
}

void sender_out_of_memory(struct sender *sender) {
        sender->counters->n_drops[DROP_OUT_OF_MEMORY]++;
        log_limited(&sender->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

static enum drop_reason drop_of(int error) {
        switch (error) {
        case -EAGAIN:
                return DROP_CONNECTION_FULL;
        case -EMSGSIZE:
                return DROP_TOO_LARGE;
        case -ENOMEM:
                return DROP_OUT_OF_MEMORY;
        default:
                return DROP_NOT_SENDABLE;
        }
}

static const char *drop_reason(int error) {
        switch (error) {
        case -EAGAIN:
                return "too many are not acknowledged yet";
        case -EMSGSIZE:
                return "it is larger than the broker accepts";
        default:
                return strerror(-error);
        }
}

int sender_send(struct sender *sender, const struct message *message, uint16_t *ret_id) {
        int r = sender->transport->publish(sender->transport->userdata, message, ret_id);

        if (r == 0)
                sender->n_sent++;
        if (r < 0) {
                sender->counters->n_drops[drop_of(r)]++;
                log_limited_fields(
                        &sender->publish_limit, LOG_WARNING, "a message was dropped",
                        (struct log_field[]){ LOG_FIELD_TEXT("topic", topic_without_key(message->topic)),
                                              LOG_FIELD_TEXT("reason", slice_from_string(drop_reason(r))),
                                              LOG_FIELD_NUMBER("message_bytes", message->payload.length),
                                              { 0 } });
        }
        return r;
}

static void send_answer(const struct batch *batch, const struct reply_address *reply_address,
                        struct sender *sender, struct message *answer, struct now now) {
        uint16_t id;

        address(batch, reply_address, now.mono_ns, answer);
        if (sender->hooks)
                sender->hooks->answer(sender->hooks->userdata, reply_address->number, answer, now);
        else
                sender_send(sender, answer, &id);
}

void batch_answer_fault(struct batch *batch, struct sender *sender, enum request_fault fault,
                        struct slice value, struct now now) {
        struct message answer;

        if (encoder_fault(sender->encoder, fault, value, &answer) < 0)
                sender_out_of_memory(sender);
        else
                send_answer(batch, last_reply_address(batch), sender, &answer, now);
        batch_forget_reply(batch);
}

void batch_count(const struct batch *batch, struct counters *counters) {
        for (size_t i = 0; i < batch->effects.n_replies; i++) {
                const struct reply *reply = &batch->effects.replies[i];
                enum verb verb = batch->reply_addresses[i].verb;

                if (verb == N_VERBS)
                        continue;
                counters->n_answers[verb][reply->outcome]++;
                if (reply->is_repeated)
                        counters->n_repeated++;
                else if (verb == VERB_SET && reply->is_insertion)
                        counters->n_insertions++;
        }
}

static bool has_room(const struct sender *sender) {
        return sender->transport->has_room(sender->transport->userdata);
}

void sender_send_connection(struct sender *sender, struct slice topic, uint64_t connection) {
        struct connection_text number = connection_text(connection);
        struct message message = {
                .topic = topic,
                .payload = { (const uint8_t *)number.text, number.length },
                .qos = 1,
        };
        uint16_t id;

        sender_send(sender, &message, &id);
}

static void publish_track_change(struct sender *sender, const struct track_change *track_change) {
        struct slice topic = SLICE_LITERAL(COMPANION_UNTRACK);

        if (track_change->is_disconnected)
                topic = SLICE_LITERAL(COMPANION_KICK);
        else if (track_change->is_tracked)
                topic = SLICE_LITERAL(COMPANION_TRACK);
        sender_send_connection(sender, topic, track_change->connection);
}

static void publish_reply(const struct batch *batch, size_t i, struct sender *sender, struct now now) {
        const struct reply_address *reply_address = &batch->reply_addresses[i];
        struct message answer;

        if (is_over(reply_address, now.mono_ns))
                sender->counters->n_expired++;
        else if (encoder_reply(sender->encoder, &batch->effects.replies[i], &answer) < 0)
                sender_out_of_memory(sender);
        else
                send_answer(batch, reply_address, sender, &answer, now);
}

/* Makes it one that the plugin delivers. correlation is borrowed as the topic is. */
static void address_delivery(struct message *message, struct slice topic,
                             const struct companion_pair *correlation) {
        message->topic = SLICE_LITERAL(COMPANION_DELIVER);
        message->response_topic = topic;
        message->correlation_data =
                (struct slice){ (const uint8_t *)correlation->text, correlation->length };
}

/*
 * message: what all notifications of this change have in common. A client whose notification does not fit, since its id
 * is very long, would wait for it without end: it is disconnected instead.
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

/* Size of a packet beside those parts of it that are added to it later, which may make its lengths longer. */
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

int batch_packet_limits(struct encoder *encoder, uint64_t max_bytes, struct packet_limits *ret_limits) {
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

static int n_deliveries(const struct sender *sender, const struct registration *registration) {
        const struct hooks *hooks = sender->hooks;

        return hooks ? hooks->notification(hooks->userdata, registration) : 1;
}

static bool publish_track_changes(struct batch *batch, struct sender *sender) {
        const struct effects *effects = &batch->effects;

        while (batch->n_track_changes_published < effects->n_track_changes && has_room(sender))
                publish_track_change(sender, &effects->track_changes[batch->n_track_changes_published++]);
        return batch->n_track_changes_published == effects->n_track_changes;
}

/*
 * The first n_publishable of the batch, of which there may be fewer: what could not be stored is told to nobody. Notifications of one
 * change follow each other: what they have in common is encoded once.
 */
static bool publish_notifications(struct batch *batch, struct sender *sender, size_t n_publishable) {
        const struct effects *effects = &batch->effects;
        size_t encoded = SIZE_MAX;
        struct message message;

        if (n_publishable > effects->n_notifications)
                n_publishable = effects->n_notifications;
        for (; batch->n_notifications_published < n_publishable && has_room(sender);
             batch->n_notifications_published++) {
                const struct notification *notification =
                        &effects->notifications[batch->n_notifications_published];

                if (notification->change != encoded &&
                    encoder_notification(sender->encoder, &effects->changes[notification->change],
                                         &message) < 0) {
                        sender_out_of_memory(sender);
                        continue;
                }
                encoded = notification->change;
                for (int n = n_deliveries(sender, notification->registration); n > 0; n--)
                        publish_notification(sender, notification->registration,
                                             effects->changes[notification->change].entry, message);
        }
        return batch->n_notifications_published >= n_publishable;
}

/* One look at the clock for all of them. */
static void count_times(const struct batch *batch, size_t first, struct sender *sender) {
        struct histogram *whole = &sender->counters->latencies[STAGE_WHOLE];
        int64_t now_ns;

        if (first == batch->n_replies_published || !sender->transport->clock_ns)
                return;

        now_ns = sender->transport->clock_ns(sender->transport->userdata);
        for (; first < batch->n_replies_published; first++)
                histogram_add(whole, now_ns - batch->reply_addresses[first].arrived_ns);
}

static bool publish_replies(struct batch *batch, struct sender *sender, struct now now) {
        size_t first = batch->n_replies_published;

        while (batch->n_replies_published < batch->effects.n_replies &&
               publish_notifications(
                       batch, sender,
                       batch->reply_addresses[batch->n_replies_published].n_notifications_before) &&
               has_room(sender))
                publish_reply(batch, batch->n_replies_published++, sender, now);
        count_times(batch, first, sender);
        return batch->n_replies_published == batch->effects.n_replies;
}

/*
 * In the order in which it happened. So whoever was answered knows that those who watch are told, though we were killed
 * the moment after; after STOP's answer nothing more comes, and after KEYNOTIFY's all of it. A client that was told
 * of its registration must be known to have one: holds come first.
 */
bool batch_publish(struct batch *batch, struct sender *sender, struct now now) {
        if (!publish_track_changes(batch, sender) || !publish_replies(batch, sender, now) ||
            !publish_notifications(batch, sender, batch->effects.n_notifications))
                return false;

        effects_reset(&batch->effects);
        buf_reset(&batch->texts);
        batch->is_stored = false;
        batch->n_reply_addresses = 0;
        batch->n_track_changes_published = 0;
        batch->n_replies_published = 0;
        batch->n_notifications_published = 0;
        return true;
}
