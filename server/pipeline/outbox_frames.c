/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox_frames.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/time_units.h"
#include "protocol/topics.h"

/* The version, before the records. */
#define HEADER_BYTES 1

/* Of a notification, without its variable parts: see protocol/frame.h. */
#define NOTIFICATION_BYTES (2 + 8 + 4 + 4 * sizeof(uint32_t))

void outbox_frames_deinit(struct outbox_frames *frames) {
        buf_deinit(&frames->frame);
        buf_deinit(&frames->properties);
}

static void reset_frame(struct outbox_frames *frames) {
        buf_reset(&frames->frame);
        frames->n_recipients = 0;
        frames->broker_bytes = 0;
}

void outbox_frames_start(struct outbox_frames *frames) {
        reset_frame(frames);
        buf_reset(&frames->properties);
        frames->deadline_ns = INT64_MAX;
}

/* Memory is short for a record. The plugin must not get the records behind it. */
static void fail_frames(struct outbox_frames *frames) {
        drops_out_of_memory(frames->outbox->drops);
        outbox_fail(frames->outbox);
}

/* 1. Frames */

static bool is_open(const struct outbox_frames *frames) {
        return frames->outbox->is_open && frames->outbox->backend == &outbox_frames_backend;
}

static struct message frame_message(struct slice payload) {
        return (struct message){ .topic = SLICE_LITERAL(COMPANION_FRAME_TO_PLUGIN), .payload = payload };
}

/*
 * Publish the first bytes of the frame. After a failure publish nothing: an END must not follow a
 * lost reply.
 */
static void publish_frame(struct outbox_frames *frames, size_t length) {
        struct message message = frame_message((struct slice){ frames->frame.data, length });
        uint16_t id;

        if (!is_open(frames))
                return;
        message.broker_bytes = length + frames->broker_bytes;
        if (outbox_send(frames->outbox, &message, &id) < 0)
                outbox_fail(frames->outbox);
}

void outbox_frames_flush(struct outbox_frames *frames) {
        if (frames->frame.length > 0)
                publish_frame(frames, frames->frame.length);
        reset_frame(frames);
}

/* Publish a frame without records, after the others. */
static void ask_plugin(struct outbox_frames *frames) {
        outbox_frames_flush(frames);
        frame_to_plugin_append(&frames->frame);
        if (buf_failed(&frames->frame))
                fail_frames(frames);
        outbox_frames_flush(frames);
}

/* 2. Records */

static bool fits_in_packet(const struct outbox_frames *frames, size_t n_bytes) {
        const struct message message = frame_message((struct slice){ .length = n_bytes });

        return frames->packet_bytes_max == 0 || message_packet_size(&message) <= frames->packet_bytes_max;
}

/* What a record adds to a frame. */
struct record_cost {
        size_t n_bytes;
        size_t n_recipients, broker_bytes;
};

/* Return whether the frame may take one more record. */
static bool has_room_for(const struct outbox_frames *frames, size_t frame_bytes, struct record_cost cost) {
        size_t n_bytes = frame_bytes + cost.n_bytes;

        return n_bytes <= OUTBOX_FRAMES_BYTES_MAX && fits_in_packet(frames, n_bytes) &&
               frames->n_recipients + cost.n_recipients <= OUTBOX_FRAMES_RECIPIENTS_MAX &&
               frames->broker_bytes + cost.broker_bytes <= OUTBOX_FRAMES_BROKER_BYTES_MAX;
}

/* The record is behind the first `length` bytes of the frame: publish these, and keep the record. */
static void publish_before(struct outbox_frames *frames, size_t length, size_t record_bytes) {
        uint8_t *data = frames->frame.data;

        publish_frame(frames, length);
        memmove(data + HEADER_BYTES, data + length, record_bytes);
        frames->frame.length = HEADER_BYTES + record_bytes;
        frames->n_recipients = 0;
        frames->broker_bytes = 0;
}

/*
 * Add a record with these costs; n_bytes is set here. Returns 0, also if memory is short: that fails
 * the outbox. -EMSGSIZE: the record alone exceeds the largest packet, and nothing is added.
 */
static int add_record(struct outbox_frames *frames, const struct frame_to_plugin_record *record,
                      struct record_cost cost) {
        struct buf *frame = &frames->frame;
        size_t length;

        if (!is_open(frames))
                return 0;
        if (frame->length == 0)
                frame_to_plugin_append(frame);
        length = frame->length;
        frame_to_plugin_append_record(frame, record);
        if (buf_failed(frame) || buf_failed(&frames->properties)) {
                fail_frames(frames);
                return 0;
        }

        cost.n_bytes = frame->length - length;
        if (!fits_in_packet(frames, HEADER_BYTES + cost.n_bytes)) {
                frame->length = length > HEADER_BYTES ? length : 0;
                return -EMSGSIZE;
        }
        if (length > HEADER_BYTES && !has_room_for(frames, length, cost))
                publish_before(frames, length, cost.n_bytes);
        frames->n_recipients += cost.n_recipients;
        frames->broker_bytes += cost.broker_bytes;
        return 0;
}

/* The user properties of the message in the form of a frame, valid until the next call. */
static struct slice encode_properties(struct outbox_frames *frames, const struct message *message) {
        buf_reset(&frames->properties);
        for (size_t i = 0; i < message->n_user_properties; i++)
                frame_property_append(&frames->properties, message->user_properties[i].name,
                                      message->user_properties[i].value);
        return buf_slice(&frames->properties);
}

int outbox_frames_reply(struct outbox_frames *frames, const struct frame_reply *reply,
                        const struct message *message) {
        struct frame_to_plugin_record record = { .kind = FRAME_REPLY, .reply = *reply };

        record.reply.has_message = message;
        if (message) {
                record.reply.properties = encode_properties(frames, message);
                record.reply.payload = message->payload;
        }
        return add_record(frames, &record, (struct record_cost){ 0 });
}

int outbox_frames_notification(struct outbox_frames *frames, const struct frame_notification *notification,
                               const struct message *message, size_t broker_bytes) {
        struct frame_to_plugin_record record = { .kind = FRAME_NOTIFICATION, .notification = *notification };

        record.notification.properties = encode_properties(frames, message);
        record.notification.payload = message->payload;
        return add_record(frames, &record,
                          (struct record_cost){ .n_recipients = frame_n_recipients(notification),
                                                .broker_bytes = broker_bytes });
}

size_t outbox_frames_n_recipients_max(const struct outbox_frames *frames, struct slice key,
                                      const struct message *message) {
        size_t n_bytes = HEADER_BYTES + NOTIFICATION_BYTES + key.length + message->payload.length;
        size_t n = OUTBOX_FRAMES_RECIPIENTS_MAX;

        for (size_t i = 0; i < message->n_user_properties; i++)
                n_bytes += 2 * sizeof(uint16_t) + message->user_properties[i].name.length +
                           message->user_properties[i].value.length;
        while (n > 0 && !fits_in_packet(frames, n_bytes + n * FRAME_RECIPIENT_SIZE))
                n--;
        return n;
}

void outbox_frames_kick(struct outbox_frames *frames, uint64_t connection) {
        (void)add_record(frames,
                         &(struct frame_to_plugin_record){ .kind = FRAME_KICK, .connection = connection },
                         (struct record_cost){ 0 });
}

void outbox_frames_end(struct outbox_frames *frames, uint64_t number, uint64_t execution_ns) {
        (void)add_record(
                frames,
                &(struct frame_to_plugin_record){ .kind = FRAME_END, .end = { number, execution_ns } },
                (struct record_cost){ 0 });
}

/* 3. Notifications */

/* The memory of one copy of a notification in the broker, beside its topic and payload. */
#define BROKER_BYTES_OVERHEAD 1024

/*
 * Timeout for the acknowledgement in a frame of the plugin, measured from the last notification. The
 * broker drops frames of the plugin if the queue of the store's session is full. Without the timeout
 * the store would stay full, and would execute no request any more.
 */
#define ACKNOWLEDGEMENT_TIMEOUT_NS NS_PER_S

/*
 * Remove the recipients of the next record from the list, at least one, and append their
 * connections. Returns the memory that their copies of the message need in the broker.
 */
static size_t take_recipients(const struct outbox_frames *frames,
                              const struct pending_notification *notification, const struct message *message,
                              struct slice *recipients, struct buf *connections) {
        size_t n_max = outbox_frames_n_recipients_max(frames, notification->key, message);
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
                if (n > 0 && n_bytes + copy_bytes > OUTBOX_FRAMES_BROKER_BYTES_MAX)
                        break;
                for (int i = outbox_n_copies(frames->outbox, notification, &recipient); i > 0; i--, n++) {
                        n_bytes += copy_bytes;
                        frame_recipient_append(connections, recipient.connection);
                }
                *recipients = rest;
        }
        return n_bytes;
}

/* Add one record for the first recipients to the frames, and remove them from the list. */
static void notify_some(struct outbox_frames *frames, const struct pending_notification *notification,
                        const struct message *message, struct slice *recipients) {
        CLEANUP(buf_deinit) struct buf connections = { 0 };
        struct frame_notification record = {
                .sequence = notification->sequence,
                .index = frames->n_recipients_before,
                .key = notification->key,
        };
        size_t broker_bytes = take_recipients(frames, notification, message, recipients, &connections);

        if (buf_failed(&connections)) {
                fail_frames(frames);
                return;
        }

        record.is_last = recipients->length == 0;
        record.recipients = buf_slice(&connections);
        frames->n_recipients_before += (uint32_t)frame_n_recipients(&record);
        if (outbox_frames_notification(frames, &record, message, broker_bytes) == 0)
                outbox_count_notifications(frames->outbox, notification, frame_n_recipients(&record));
        else /* it is too large: the recipients would wait for it forever */
                for (size_t i = 0; i < frame_n_recipients(&record); i++)
                        outbox_frames_kick(frames, frame_recipient(&record, i));
}

static void publish_notification(void *backend, const struct pending_notification *notification,
                                 const struct message *message, struct slice *recipients) {
        struct outbox_frames *frames = backend;

        if (frames->outbox->recipients_offset == 0)
                frames->n_recipients_before = 0;
        do /* test control can omit all recipients: then one record without recipients is added */
                notify_some(frames, notification, message, recipients);
        while (recipients->length > 0 && outbox_has_room(frames->outbox));
        /* read_ns: the last reading of the clock */
        frames->deadline_ns = frames->outbox->quantum->read_ns + ACKNOWLEDGEMENT_TIMEOUT_NS;
}

/* 4. Acknowledgements */

static bool is_acknowledgement_awaited(const struct outbox_frames *frames) {
        return is_open(frames) && frames->outbox->published_sequence > frames->outbox->state->acknowledged;
}

void outbox_frames_acknowledged(struct outbox_frames *frames, uint64_t sequence) {
        if (sequence <= frames->outbox->published_sequence)
                state_acknowledge(frames->outbox->state, sequence);
        if (!is_acknowledgement_awaited(frames))
                frames->deadline_ns = INT64_MAX;
}

/* If no change is published completely, the next notification sets the deadline. */
void outbox_frames_tick(struct outbox_frames *frames, struct now now) {
        if (now.mono_ns < frames->deadline_ns)
                return;

        frames->deadline_ns = INT64_MAX;
        if (!is_acknowledgement_awaited(frames))
                return;
        frames->deadline_ns = now.mono_ns + ACKNOWLEDGEMENT_TIMEOUT_NS;
        ask_plugin(frames);
}

/* 5. Replies */

/* The registrations of the request's connection, after the batch. */
static enum frame_tracking tracking_of(const struct outbox_frames *frames,
                                       const struct pending_reply *pending) {
        if (pending->verb != VERB_KEYNOTIFY)
                return FRAME_TRACKING_UNCHANGED;
        return engine_registration_of_connection(frames->outbox->state->engine, pending->connection)
                       ? FRAME_TRACKED
                       : FRAME_UNTRACKED;
}

/* A reply that fits in a packet with a short Response Topic may be too large for a frame. */
static void publish_reply(void *backend, const struct pending_reply *pending,
                          const struct message *message) {
        static const struct reply too_large = { .result.outcome = OUTCOME_REPLY_TOO_LARGE };
        struct outbox_frames *frames = backend;
        struct frame_reply reply = { .number = pending->number, .tracking = tracking_of(frames, pending) };
        struct message error;

        if (outbox_frames_reply(frames, &reply, message) != -EMSGSIZE)
                return;
        if (encoder_reply(frames->outbox->encoder, &too_large, &error) < 0)
                fail_frames(frames);
        else
                (void)outbox_frames_reply(frames, &reply, &error);
}

/* The plugin sends the request again after the next HELLO, and gets the notification then. */
static void lose_record(void *backend, size_t n_recipients) {
        (void)n_recipients;
        fail_frames(backend);
}

/* Report the end of the batch's records, and how long the batch has taken without its commit. */
static void end_batch(void *backend, const struct batch *batch) {
        struct outbox_frames *frames = backend;

        if (batch->last_number > 0)
                outbox_frames_end(frames, batch->last_number, (uint64_t)batch->execution_ns);
        outbox_frames_flush(frames);
}

const struct outbox_backend outbox_frames_backend = {
        .is_kept = false,
        .notification = publish_notification,
        .reply = publish_reply,
        .lose = lose_record,
        .end = end_batch,
};
