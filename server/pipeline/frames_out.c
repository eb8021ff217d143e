/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/frames_out.h"

#include <errno.h>

/* The version, before the records. */
#define HEADER_BYTES 1

/* Of a notification, without its variable parts: see protocol/frame.h. */
#define NOTIFICATION_BYTES (2 + 8 + 4 + 4 * sizeof(uint32_t))

void frames_out_deinit(struct frames_out *frames_out) {
        buf_deinit(&frames_out->frame);
        buf_deinit(&frames_out->properties);
}

static void reset(struct frames_out *frames_out) {
        buf_reset(&frames_out->frame);
        frames_out->n_recipients = 0;
        frames_out->broker_bytes = 0;
}

void frames_out_start(struct frames_out *frames_out) {
        reset(frames_out);
        buf_reset(&frames_out->properties);
        frames_out->has_failed = false;
}

void frames_out_stop(struct frames_out *frames_out) {
        frames_out->has_failed = true;
}

void frames_out_fail(struct frames_out *frames_out) {
        publisher_count_out_of_memory(frames_out->publisher);
        frames_out_stop(frames_out);
}

/* 1. Publishing */

static struct message message_of(struct slice payload) {
        return (struct message){ .topic = SLICE_LITERAL(COMPANION_FRAME_TO_PLUGIN), .payload = payload };
}

/*
 * Publish the first bytes of the frame. After a failure publish nothing: an END must not follow a
 * lost reply.
 */
static void publish(struct frames_out *frames_out, size_t length) {
        struct message message = message_of((struct slice){ frames_out->frame.data, length });
        uint16_t id;

        if (frames_out->has_failed)
                return;
        message.broker_bytes = length + frames_out->broker_bytes;
        if (publisher_send(frames_out->publisher, &message, &id) < 0)
                frames_out->has_failed = true;
}

void frames_out_flush(struct frames_out *frames_out) {
        if (frames_out->frame.length > 0)
                publish(frames_out, frames_out->frame.length);
        reset(frames_out);
}

void frames_out_ask(struct frames_out *frames_out) {
        frames_out_flush(frames_out);
        frame_to_plugin_append(&frames_out->frame);
        if (buf_failed(&frames_out->frame))
                frames_out_fail(frames_out);
        frames_out_flush(frames_out);
}

/* 2. Records */

static bool fits_in_packet(const struct frames_out *frames_out, size_t n_bytes) {
        const struct message message = message_of((struct slice){ .length = n_bytes });

        return frames_out->packet_bytes_max == 0 ||
               message_packet_size(&message) <= frames_out->packet_bytes_max;
}

/* What a record adds to a frame. */
struct record_cost {
        size_t n_bytes;
        size_t n_recipients, broker_bytes;
};

/* Return whether the frame may take one more record. */
static bool has_room_for(const struct frames_out *frames_out, size_t frame_bytes, struct record_cost cost) {
        size_t n_bytes = frame_bytes + cost.n_bytes;

        return n_bytes <= FRAMES_OUT_BYTES_MAX && fits_in_packet(frames_out, n_bytes) &&
               frames_out->n_recipients + cost.n_recipients <= FRAMES_OUT_RECIPIENTS_MAX &&
               frames_out->broker_bytes + cost.broker_bytes <= FRAMES_OUT_BROKER_BYTES_MAX;
}

/* The record is behind the first `length` bytes of the frame: publish these, and keep the record. */
static void publish_before(struct frames_out *frames_out, size_t length, size_t record_bytes) {
        uint8_t *data = frames_out->frame.data;

        publish(frames_out, length);
        memmove(data + HEADER_BYTES, data + length, record_bytes);
        frames_out->frame.length = HEADER_BYTES + record_bytes;
        frames_out->n_recipients = 0;
        frames_out->broker_bytes = 0;
}

/*
 * Add a record with these costs; n_bytes is set here. Returns 0, also if memory is short: that sets
 * has_failed. -EMSGSIZE: the record alone exceeds the largest packet, and nothing is added.
 */
static int add(struct frames_out *frames_out, const struct frame_to_plugin_record *record,
               struct record_cost cost) {
        struct buf *frame = &frames_out->frame;
        size_t length;

        if (frames_out->has_failed)
                return 0;
        if (frame->length == 0)
                frame_to_plugin_append(frame);
        length = frame->length;
        frame_to_plugin_append_record(frame, record);
        if (buf_failed(frame) || buf_failed(&frames_out->properties)) {
                frames_out_fail(frames_out);
                return 0;
        }

        cost.n_bytes = frame->length - length;
        if (!fits_in_packet(frames_out, HEADER_BYTES + cost.n_bytes)) {
                frame->length = length > HEADER_BYTES ? length : 0;
                return -EMSGSIZE;
        }
        if (length > HEADER_BYTES && !has_room_for(frames_out, length, cost))
                publish_before(frames_out, length, cost.n_bytes);
        frames_out->n_recipients += cost.n_recipients;
        frames_out->broker_bytes += cost.broker_bytes;
        return 0;
}

/* The user properties of the message in the form of a frame, valid until the next call. */
static struct slice encode_properties(struct frames_out *frames_out, const struct message *message) {
        buf_reset(&frames_out->properties);
        for (size_t i = 0; i < message->n_user_properties; i++)
                frame_property_append(&frames_out->properties, message->user_properties[i].name,
                                      message->user_properties[i].value);
        return buf_slice(&frames_out->properties);
}

int frames_out_reply(struct frames_out *frames_out, const struct frame_reply *reply,
                     const struct message *message) {
        struct frame_to_plugin_record record = { .kind = FRAME_REPLY, .reply = *reply };

        record.reply.has_message = message;
        if (message) {
                record.reply.properties = encode_properties(frames_out, message);
                record.reply.payload = message->payload;
        }
        return add(frames_out, &record, (struct record_cost){ 0 });
}

int frames_out_notification(struct frames_out *frames_out, const struct frame_notification *notification,
                            const struct message *message, size_t broker_bytes) {
        struct frame_to_plugin_record record = { .kind = FRAME_NOTIFICATION, .notification = *notification };

        record.notification.properties = encode_properties(frames_out, message);
        record.notification.payload = message->payload;
        return add(frames_out, &record,
                   (struct record_cost){ .n_recipients = frame_n_recipients(notification),
                                         .broker_bytes = broker_bytes });
}

size_t frames_out_n_recipients_max(const struct frames_out *frames_out, struct slice key,
                                   const struct message *message) {
        size_t n_bytes = HEADER_BYTES + NOTIFICATION_BYTES + key.length + message->payload.length;
        size_t n = FRAMES_OUT_RECIPIENTS_MAX;

        for (size_t i = 0; i < message->n_user_properties; i++)
                n_bytes += 2 * sizeof(uint16_t) + message->user_properties[i].name.length +
                           message->user_properties[i].value.length;
        while (n > 0 && !fits_in_packet(frames_out, n_bytes + n * FRAME_RECIPIENT_SIZE))
                n--;
        return n;
}

void frames_out_kick(struct frames_out *frames_out, uint64_t connection) {
        (void)add(frames_out,
                  &(struct frame_to_plugin_record){ .kind = FRAME_KICK, .connection = connection },
                  (struct record_cost){ 0 });
}

void frames_out_end(struct frames_out *frames_out, uint64_t number, uint64_t execution_ns) {
        (void)add(frames_out,
                  &(struct frame_to_plugin_record){ .kind = FRAME_END, .end = { number, execution_ns } },
                  (struct record_cost){ 0 });
}
