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
struct envelope {
        size_t response_topic_offset;
        size_t response_topic_length;
        size_t correlation_offset;
        size_t correlation_length;
        bool has_correlation;
        bool has_expiry;
        uint32_t expiry_s; /* what was left when it arrived */
        int64_t arrived_ns;
        enum verb verb;
        uint64_t number;            /* for the hooks */
        size_t n_notifications_due; /* of the batch: they leave before it */
};

static void cleanup_entry(struct entry **entry) {
        entry_unref(*entry);
}

void batch_deinit(struct batch *batch) {
        effects_deinit(&batch->effects);
        buf_deinit(&batch->texts);
        free(batch->envelopes);
        *batch = (struct batch){ 0 };
}

bool batch_is_empty(const struct batch *batch) {
        const struct effects *effects = &batch->effects;

        return effects->n_rows == 0 && effects->n_holds == 0 && effects->n_replies == 0 &&
               effects->n_notifications == 0;
}

static size_t keep_text(struct batch *batch, struct slice text) {
        size_t offset = batch->texts.length;

        buf_append_slice(&batch->texts, text);
        buf_append(&batch->texts, "", 1);
        return offset;
}

int batch_expect_reply(struct batch *batch, const struct message *message, int64_t arrived_ns,
                       enum verb verb) {
        size_t n_bytes_before = batch->texts.length;
        struct envelope envelope;
        int r;

        r = array_reserve((void **)&batch->envelopes, &batch->envelopes_capacity, batch->n_envelopes + 1,
                          sizeof(*batch->envelopes));
        if (r < 0)
                return r;

        envelope = (struct envelope){
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

        batch->envelopes[batch->n_envelopes++] = envelope;
        return 0;
}

static const struct envelope *last_envelope(const struct batch *batch) {
        return &batch->envelopes[batch->n_envelopes - 1];
}

void batch_number_reply(struct batch *batch, uint64_t number) {
        batch->envelopes[batch->n_envelopes - 1].number = number;
}

void batch_place_reply(struct batch *batch) {
        batch->envelopes[batch->n_envelopes - 1].n_notifications_due = batch->effects.n_notifications;
}

void batch_forget_reply(struct batch *batch) {
        batch->texts.length = last_envelope(batch)->response_topic_offset;
        batch->n_envelopes--;
}

/* A test clock may have been reset since it arrived. */
static int64_t waited_s(const struct envelope *envelope, int64_t now_ns) {
        return now_ns > envelope->arrived_ns ? (now_ns - envelope->arrived_ns) / NS_PER_S : 0;
}

static bool is_over(const struct envelope *envelope, int64_t now_ns) {
        return envelope->has_expiry && waited_s(envelope, now_ns) >= envelope->expiry_s;
}

bool batch_is_over(const struct batch *batch, int64_t now_ns) {
        return is_over(last_envelope(batch), now_ns);
}

/* Puts what the envelope says into an answer. */
static void address(const struct batch *batch, const struct envelope *envelope, int64_t now_ns,
                    struct message *message) {
        const uint8_t *texts = batch->texts.data;

        message->topic =
                (struct slice){ texts + envelope->response_topic_offset, envelope->response_topic_length };
        if (envelope->has_correlation)
                message->correlation_data =
                        (struct slice){ texts + envelope->correlation_offset, envelope->correlation_length };
        message->has_expiry = envelope->has_expiry;
        if (envelope->has_expiry)
                message->expiry_s = envelope->expiry_s - (uint32_t)waited_s(envelope, now_ns);
}

void publisher_lost(struct publisher *publisher) {
        publisher->counters->n_drops[DROP_OUT_OF_MEMORY]++;
        log_limited(&publisher->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

static enum drop drop_of(int error) {
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

int publisher_send(struct publisher *publisher, const struct message *message, uint16_t *ret_id) {
        int r = publisher->outlet->publish(publisher->outlet->userdata, message, ret_id);

        if (r == 0)
                publisher->n_sent++;
        if (r < 0) {
                publisher->counters->n_drops[drop_of(r)]++;
                log_limited_fields(
                        &publisher->publish_limit, LOG_WARNING, "a message was dropped",
                        (struct log_field[]){ LOG_FIELD_TEXT("topic", topic_without_key(message->topic)),
                                              LOG_FIELD_TEXT("reason", slice_from_string(drop_reason(r))),
                                              LOG_FIELD_NUMBER("message_bytes", message->payload.length),
                                              { 0 } });
        }
        return r;
}

static void send_answer(const struct batch *batch, const struct envelope *envelope,
                        struct publisher *publisher, struct message *answer, struct now now) {
        uint16_t id;

        address(batch, envelope, now.mono_ns, answer);
        if (publisher->hooks)
                publisher->hooks->answer(publisher->hooks->userdata, envelope->number, answer, now);
        else
                publisher_send(publisher, answer, &id);
}

void batch_answer_fault(struct batch *batch, struct publisher *publisher, enum envelope_fault fault,
                        struct slice value, struct now now) {
        struct message answer;

        if (encoder_fault(publisher->encoder, fault, value, &answer) < 0)
                publisher_lost(publisher);
        else
                send_answer(batch, last_envelope(batch), publisher, &answer, now);
        batch_forget_reply(batch);
}

void batch_count(const struct batch *batch, struct counters *counters) {
        for (size_t i = 0; i < batch->effects.n_replies; i++) {
                const struct reply *reply = &batch->effects.replies[i];
                enum verb verb = batch->envelopes[i].verb;

                if (verb == N_VERBS)
                        continue;
                counters->n_answers[verb][reply->outcome]++;
                if (reply->is_repeated)
                        counters->n_repeated++;
                else if (verb == VERB_SET && reply->is_insertion)
                        counters->n_insertions++;
        }
}

static bool has_room(const struct publisher *publisher) {
        return publisher->outlet->has_room(publisher->outlet->userdata);
}

void publisher_send_connection(struct publisher *publisher, struct slice topic, uint64_t connection) {
        struct connection_text number = connection_text(connection);
        struct message message = {
                .topic = topic,
                .payload = { (const uint8_t *)number.text, number.length },
                .qos = 1,
        };
        uint16_t id;

        publisher_send(publisher, &message, &id);
}

static void publish_hold(struct publisher *publisher, const struct hold *hold) {
        struct slice topic = SLICE_LITERAL(COMPANION_UNTRACK);

        if (hold->is_disconnected)
                topic = SLICE_LITERAL(COMPANION_KICK);
        else if (hold->is_held)
                topic = SLICE_LITERAL(COMPANION_TRACK);
        publisher_send_connection(publisher, topic, hold->connection);
}

static void publish_reply(const struct batch *batch, size_t i, struct publisher *publisher, struct now now) {
        const struct envelope *envelope = &batch->envelopes[i];
        struct message answer;

        if (is_over(envelope, now.mono_ns))
                publisher->counters->n_expired++;
        else if (encoder_reply(publisher->encoder, &batch->effects.replies[i], &answer) < 0)
                publisher_lost(publisher);
        else
                send_answer(batch, envelope, publisher, &answer, now);
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
static void publish_notification(struct publisher *publisher, struct registration *registration, bool is_set,
                                 struct message message) {
        struct slice topic = { (const uint8_t *)registration->topic, registration->topic_length };
        struct companion_pair correlation;
        uint16_t id;
        int r;

        message.topic = topic;
        if (publisher->direct) {
                correlation = companion_pair(registration->connection, ++publisher->last_sequence);
                address_delivery(&message, topic, &correlation);
        }

        r = publisher_send(publisher, &message, &id);
        if (r == -EMSGSIZE && publisher->direct)
                publisher_send_connection(publisher, SLICE_LITERAL(COMPANION_KICK),
                                          registration->connection);
        if (r < 0)
                return;
        if (is_set)
                publisher->counters->n_notifications_set++;
        else
                publisher->counters->n_notifications_deleted++;
        if (publisher->notified)
                publisher->notified(publisher->userdata, registration, id);
}

/* Size of a packet beside those parts of it that are added to it later, which may make its lengths longer. */
static uint64_t size_without_parts(const struct message *message) {
        return message_packet_size(message) + 2 * (MESSAGE_VARINT_MAX - 1);
}

static int measure_notification(struct encoder *encoder, uint64_t *ret_n_bytes) {
        static const struct version longest = { INT64_MAX, INT32_MAX };
        const struct companion_pair correlation = companion_pair(UINT64_MAX, UINT64_MAX);
        CLEANUP(cleanup_entry) struct entry *entry = NULL;
        struct change change = { .version = longest };
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

static int n_deliveries(const struct publisher *publisher, const struct registration *registration) {
        const struct hooks *hooks = publisher->hooks;

        return hooks ? hooks->notification(hooks->userdata, registration) : 1;
}

static bool publish_holds(struct batch *batch, struct publisher *publisher) {
        const struct effects *effects = &batch->effects;

        while (batch->n_holds_published < effects->n_holds && has_room(publisher))
                publish_hold(publisher, &effects->holds[batch->n_holds_published++]);
        return batch->n_holds_published == effects->n_holds;
}

/*
 * The first n_due of the batch, of which there may be fewer: what could not be stored is told to nobody. Notifications of one
 * change follow each other: what they have in common is encoded once.
 */
static bool publish_notifications(struct batch *batch, struct publisher *publisher, size_t n_due) {
        const struct effects *effects = &batch->effects;
        size_t encoded = SIZE_MAX;
        struct message message;

        if (n_due > effects->n_notifications)
                n_due = effects->n_notifications;
        for (; batch->n_notifications_published < n_due && has_room(publisher);
             batch->n_notifications_published++) {
                const struct notification *notification =
                        &effects->notifications[batch->n_notifications_published];

                if (notification->change != encoded &&
                    encoder_notification(publisher->encoder, &effects->changes[notification->change],
                                         &message) < 0) {
                        publisher_lost(publisher);
                        continue;
                }
                encoded = notification->change;
                for (int n = n_deliveries(publisher, notification->registration); n > 0; n--)
                        publish_notification(publisher, notification->registration,
                                             effects->changes[notification->change].entry, message);
        }
        return batch->n_notifications_published >= n_due;
}

/* One look at the clock for all of them. */
static void count_times(const struct batch *batch, size_t first, struct publisher *publisher) {
        struct histogram *whole = &publisher->counters->latencies[STAGE_WHOLE];
        int64_t now_ns;

        if (first == batch->n_replies_published || !publisher->outlet->clock_ns)
                return;

        now_ns = publisher->outlet->clock_ns(publisher->outlet->userdata);
        for (; first < batch->n_replies_published; first++)
                histogram_add(whole, now_ns - batch->envelopes[first].arrived_ns);
}

static bool publish_replies(struct batch *batch, struct publisher *publisher, struct now now) {
        size_t first = batch->n_replies_published;

        while (batch->n_replies_published < batch->effects.n_replies &&
               publish_notifications(batch, publisher,
                                     batch->envelopes[batch->n_replies_published].n_notifications_due) &&
               has_room(publisher))
                publish_reply(batch, batch->n_replies_published++, publisher, now);
        count_times(batch, first, publisher);
        return batch->n_replies_published == batch->effects.n_replies;
}

/*
 * In the order in which it happened. So whoever was answered knows that those who watch are told, though we were killed
 * the moment after; after STOP's answer nothing more comes, and after KEYNOTIFY's all of it. A client that was told
 * of its registration must be known to have one: holds come first.
 */
bool batch_publish(struct batch *batch, struct publisher *publisher, struct now now) {
        if (!publish_holds(batch, publisher) || !publish_replies(batch, publisher, now) ||
            !publish_notifications(batch, publisher, batch->effects.n_notifications))
                return false;

        effects_reset(&batch->effects);
        buf_reset(&batch->texts);
        batch->is_stored = false;
        batch->n_envelopes = 0;
        batch->n_holds_published = 0;
        batch->n_replies_published = 0;
        batch->n_notifications_published = 0;
        return true;
}
