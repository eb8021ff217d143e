/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/outbox_frames.h"

#include <errno.h>

#include "base/time_units.h"
#include "protocol/topics.h"

void outbox_frames_deinit(struct outbox *outbox) {
        buf_deinit(&outbox->frames.frame);
        buf_deinit(&outbox->frames.properties);
        buf_deinit(&outbox->frames.connections);
}

static void reset_frame(struct outbox_frames *frames) {
        buf_reset(&frames->frame);
        frames->n_recipients = 0;
        frames->broker_bytes = 0;
}

static struct message frame_message(struct slice payload) {
        return (struct message){ .topic = SLICE_LITERAL(COMPANION_FRAME_TO_PLUGIN), .payload = payload };
}

/* A longer payload has a longer length in its packet: after the first guess, at most 3 bytes too long. */
void outbox_frames_set_max_packet(struct outbox *outbox, uint64_t packet_bytes_max) {
        struct message message = frame_message((struct slice){ 0 });
        uint64_t n_bytes = message_packet_size(&message);

        message.payload.length = packet_bytes_max > n_bytes ? (size_t)(packet_bytes_max - n_bytes) : 0;
        while (message.payload.length > 0 && message_packet_size(&message) > packet_bytes_max)
                message.payload.length--;
        outbox->frames.bytes_max = message.payload.length;
}

void outbox_frames_drop(struct outbox *outbox) {
        reset_frame(&outbox->frames);
        buf_reset(&outbox->frames.properties);
        buf_reset(&outbox->frames.connections);
        outbox->frames.deadline_ns = INT64_MAX;
}

/* 1. Frames */

static bool is_open_for_frames(const struct outbox *outbox) {
        return outbox->status == OUTBOX_OPEN && outbox->backend == &outbox_frames_backend;
}

/* After a failure publish nothing: an END must not follow a lost reply. */
void outbox_frames_flush(struct outbox *outbox) {
        struct message message = frame_message(buf_slice(&outbox->frames.frame));

        message.broker_bytes = message.payload.length + outbox->frames.broker_bytes;
        if (message.payload.length > 0 && is_open_for_frames(outbox) && outbox_send(outbox, &message) < 0)
                outbox_fail(outbox);
        reset_frame(&outbox->frames);
}

/* Publish a frame without records, after the others. */
static void request_acknowledgement(struct outbox *outbox) {
        outbox_frames_flush(outbox);
        frame_to_plugin_append(&outbox->frames.frame);
        if (buf_failed(&outbox->frames.frame))
                outbox_lose(outbox);
        outbox_frames_flush(outbox);
}

/* 2. Records */

/* Return whether a record with these costs can be added to the frame, which has a record. */
static bool has_room_for(const struct outbox_frames *frames, size_t n_bytes, size_t n_recipients,
                         size_t broker_bytes) {
        n_bytes += frames->frame.length;

        return n_bytes <= OUTBOX_FRAMES_BYTES_MAX && n_bytes <= frames->bytes_max &&
               frames->n_recipients + n_recipients <= OUTBOX_FRAMES_RECIPIENTS_MAX &&
               frames->broker_bytes + broker_bytes <= OUTBOX_FRAMES_BROKER_BYTES_MAX;
}

/*
 * Add a record. broker_bytes: the memory that the copies of a notification need in the broker. Returns
 * 0, also if memory is short: outbox_lose(). -EMSGSIZE: the record alone exceeds the largest
 * packet, and nothing is added.
 */
static int add_record(struct outbox *outbox, const struct frame_to_plugin_record *record,
                      size_t broker_bytes) {
        struct outbox_frames *frames = &outbox->frames;
        bool is_notification = record->kind == FRAME_NOTIFICATION;
        size_t n_recipients = is_notification ? frame_n_recipients(&record->notification) : 0;
        size_t n_bytes = frame_to_plugin_record_size(record);

        if (!is_open_for_frames(outbox))
                return 0;
        if (FRAME_TO_PLUGIN_HEADER_SIZE + n_bytes > frames->bytes_max)
                return -EMSGSIZE;

        if (frames->frame.length > 0 && !has_room_for(frames, n_bytes, n_recipients, broker_bytes))
                outbox_frames_flush(outbox);
        if (frames->frame.length == 0)
                frame_to_plugin_append(&frames->frame);
        frame_to_plugin_append_record(&frames->frame, record);
        frames->n_recipients += n_recipients;
        frames->broker_bytes += broker_bytes;
        if (buf_failed(&frames->frame) || buf_failed(&frames->properties) ||
            buf_failed(&frames->connections))
                outbox_lose(outbox);
        return 0;
}

/* The user properties of the message in the form of a frame, valid until the next call. */
static struct slice encode_properties(struct outbox_frames *frames, const struct message *message) {
        buf_reset(&frames->properties);
        frame_properties_append(&frames->properties, message);
        return buf_slice(&frames->properties);
}

void outbox_frames_send_first(struct outbox *outbox) {
        const struct frame_to_plugin_record record = { .kind = FRAME_END };

        (void)add_record(outbox, &record, 0);
        outbox_frames_flush(outbox);
}

void outbox_frames_kick(struct outbox *outbox, uint64_t connection) {
        const struct frame_to_plugin_record record = { .kind = FRAME_KICK, .connection = connection };

        (void)add_record(outbox, &record, 0);
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

/* How many recipients can be added to this record, which has none; 0: it is too large. */
static size_t n_recipients_max(const struct outbox_frames *frames,
                               const struct frame_to_plugin_record *record) {
        size_t n_bytes = FRAME_TO_PLUGIN_HEADER_SIZE + frame_to_plugin_record_size(record);
        size_t n = n_bytes < frames->bytes_max ? (frames->bytes_max - n_bytes) / FRAME_RECIPIENT_SIZE : 0;

        return n < OUTBOX_FRAMES_RECIPIENTS_MAX ? n : OUTBOX_FRAMES_RECIPIENTS_MAX;
}

/* The memory that the copy for this recipient needs in the broker. */
static size_t broker_bytes_of_copy(const struct frame_notification *notification,
                                   const struct recipient *recipient) {
        return notification->payload.length + BROKER_BYTES_OVERHEAD +
               topic_notify_length(recipient->client_length, notification->key.length);
}

/*
 * Remove the first recipients from the list, and return them: as many as fit into this record, which has
 * none, and at least one.
 */
static struct slice take_recipients(const struct outbox_frames *frames,
                                    const struct frame_to_plugin_record *record, struct slice *recipients) {
        size_t n_max = n_recipients_max(frames, record), n_bytes = 0;
        struct slice taken = *recipients, rest = *recipients;
        struct recipient recipient;

        for (size_t n = 0; n == 0 || n < n_max; n++) {
                if (!recipients_next(&rest, &recipient)) {
                        *recipients = rest; /* in a damaged row, some bytes may remain */
                        break;
                }
                n_bytes += broker_bytes_of_copy(&record->notification, &recipient);
                if (n > 0 && n_bytes > OUTBOX_FRAMES_BROKER_BYTES_MAX)
                        break;
                *recipients = rest;
        }
        taken.length -= recipients->length;
        return taken;
}

/*
 * Set the recipients of the record, without clients of a broker without the plugin: their registrations
 * ended with that broker. Returns the memory that the copies need in the broker.
 */
static size_t set_recipients(struct outbox *outbox, const struct pending_notification *notification,
                             struct slice recipients, struct frame_to_plugin_record *record) {
        struct recipient recipient;
        size_t n_bytes = 0;

        buf_reset(&outbox->frames.connections);
        while (recipients_next(&recipients, &recipient)) {
                int n = recipient.connection > 0 ? outbox_n_copies(outbox, notification, &recipient) : 0;

                for (; n > 0; n--) {
                        n_bytes += broker_bytes_of_copy(&record->notification, &recipient);
                        frame_recipient_append(&outbox->frames.connections, recipient.connection);
                }
        }
        record->notification.recipients = buf_slice(&outbox->frames.connections);
        return n_bytes;
}

static void frames_publish_notification(struct outbox *outbox,
                                        const struct pending_notification *notification,
                                        const struct message *message, struct slice *recipients) {
        struct outbox_frames *frames = &outbox->frames;
        struct frame_to_plugin_record record = {
                .kind = FRAME_NOTIFICATION,
                .notification = { .sequence = notification->sequence,
                                  .key = notification->key,
                                  .properties = encode_properties(frames, message),
                                  .payload = message->payload },
        };
        struct frame_notification *part = &record.notification;

        if (outbox->recipients_offset == 0)
                frames->n_recipients_before = 0;
        do { /* set_recipients() can omit all recipients: then one record without recipients is added */
                struct slice taken;
                size_t n, broker_bytes;

                part->recipients = (struct slice){ 0 };
                taken = take_recipients(frames, &record, recipients);
                broker_bytes = set_recipients(outbox, notification, taken, &record);
                n = frame_n_recipients(part);
                part->index = frames->n_recipients_before;
                part->is_last = recipients->length == 0;
                frames->n_recipients_before += (uint32_t)n;
                if (add_record(outbox, &record, broker_bytes) == 0)
                        outbox_count_notifications(outbox, notification, n);
                else /* it is too large: the recipients would wait for it forever */
                        for (size_t i = 0; i < n; i++)
                                outbox_frames_kick(outbox, frame_recipient(part, i));
        } while (recipients->length > 0 && outbox_has_room(outbox));
        frames->deadline_ns = outbox->clock->read_ns + ACKNOWLEDGEMENT_TIMEOUT_NS;
}

/* 4. Acknowledgements */

static bool is_acknowledgement_awaited(const struct outbox *outbox) {
        return is_open_for_frames(outbox) && outbox->published_sequence > outbox->state->acknowledged;
}

void outbox_frames_acknowledged(struct outbox *outbox, uint64_t sequence) {
        if (sequence <= outbox->published_sequence)
                state_acknowledge(outbox->state, sequence);
        if (!is_acknowledgement_awaited(outbox))
                outbox->frames.deadline_ns = INT64_MAX;
}

/* If no change is published completely, the next notification sets the deadline. */
void outbox_frames_tick(struct outbox *outbox, struct now now) {
        if (now.mono_ns < outbox->frames.deadline_ns)
                return;

        outbox->frames.deadline_ns = INT64_MAX;
        if (!is_acknowledgement_awaited(outbox))
                return;
        outbox->frames.deadline_ns = now.mono_ns + ACKNOWLEDGEMENT_TIMEOUT_NS;
        request_acknowledgement(outbox);
}

/* 5. Replies */

/* The registrations of the request's connection, after the batch. */
static enum frame_tracking connection_tracking(const struct outbox *outbox,
                                               const struct pending_reply *pending) {
        if (pending->verb != VERB_KEYNOTIFY)
                return FRAME_TRACKING_UNCHANGED;
        return registrations_of_connection(engine_registrations(outbox->state->engine), pending->connection)
                       ? FRAME_TRACKED
                       : FRAME_UNTRACKED;
}

/* message NULL: the plugin publishes none. Returns the result of add_record(). */
static int add_reply(struct outbox *outbox, const struct pending_reply *pending,
                     const struct message *message) {
        struct frame_to_plugin_record record = {
                .kind = FRAME_REPLY,
                .reply = { .record_number = pending->record_number,
                           .tracking = connection_tracking(outbox, pending),
                           .has_message = message },
        };

        if (message) {
                record.reply.properties = encode_properties(&outbox->frames, message);
                record.reply.payload = message->payload;
        }
        return add_record(outbox, &record, 0);
}

/* A reply that fits in a packet with a short Response Topic may be too large for a frame. */
static void frames_publish_reply(struct outbox *outbox, const struct pending_reply *pending,
                                 const struct message *message) {
        static const struct reply too_large = { .result.outcome = OUTCOME_REPLY_TOO_LARGE };
        struct message error;

        if (add_reply(outbox, pending, message) != -EMSGSIZE)
                return;
        if (encoder_reply(outbox->encoder, &too_large, &error) < 0)
                outbox_lose(outbox);
        else
                (void)add_reply(outbox, pending, &error);
}

/* Report the end of the batch's records, and how long the batch has taken without its commit. */
static void frames_end_batch(struct outbox *outbox) {
        const struct batch *batch = outbox->batch;
        const struct frame_to_plugin_record record = {
                .kind = FRAME_END, .end = { batch->last_record_number, (uint64_t)batch->work_ns }
        };

        if (batch->last_record_number > 0)
                (void)add_record(outbox, &record, 0);
        outbox_frames_flush(outbox);
}

const struct outbox_backend outbox_frames_backend = {
        .is_kept = false,
        .publish_notification = frames_publish_notification,
        .publish_reply = frames_publish_reply,
        .end_batch = frames_end_batch,
};
