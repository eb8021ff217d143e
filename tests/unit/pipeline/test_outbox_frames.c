/* SPDX-License-Identifier: Apache-2.0 */

/* The frames that the backend makes of replies, notifications and ends of batches, without a pipeline. */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "pipeline/outbox_frames.h"

#define S SLICE_LITERAL

/* 1. A transport that keeps the frames */

static struct message *published[300]; /* copies */
static size_t n_published;
static int publish_result;

static int keep(void *userdata, const struct message *message) {
        (void)userdata;
        if (publish_result < 0)
                return publish_result;
        cr_assert_lt(n_published, ARRAY_LENGTH(published));
        published[n_published] = message_copy(message);
        cr_assert_not_null(published[n_published]);
        n_published++;
        return 0;
}

static bool has_room(void *userdata) {
        (void)userdata;
        return true;
}

static const struct transport transport = { .publish = keep, .has_room = has_room };
static struct encoder encoder = { .node_id = S("StateStore") };
static struct counters counters;
static struct drops drops;
static struct work_clock work_clock;
static struct state state; /* without pending notifications */
static struct outbox outbox;

static void setup(void) {
        publish_result = 0;
        counters = (struct counters){ 0 };
        drops.counters = &counters;
        outbox = (struct outbox){
                .state = &state,
                .transport = &transport,
                .counters = &counters,
                .drops = &drops,
                .encoder = &encoder,
                .clock = &work_clock,
                .frames.deadline_ns = INT64_MAX,
        };
        outbox_frames_set_max_packet(&outbox, MESSAGE_PACKET_MAX);
        outbox_open(&outbox, &outbox_frames_backend);
}

static void teardown(void) {
        while (n_published > 0)
                free(published[--n_published]);
        outbox_frames_deinit(&outbox);
        encoder_deinit(&encoder);
}

TestSuite(outbox_frames, .init = setup, .fini = teardown);

/* The records of a published frame. */
static struct slice records_of(size_t i) {
        struct slice records;

        cr_assert_lt(i, n_published);
        cr_expect(slice_equal(published[i]->topic, S(COMPANION_FRAME_TO_PLUGIN)));
        cr_expect_eq(published[i]->qos, 0);
        cr_assert_eq(frame_to_plugin_read(published[i]->payload, &records), 0);
        return records;
}

static struct frame_to_plugin_record take_record(struct slice *records) {
        struct frame_to_plugin_record record = { 0 };

        cr_assert(frame_to_plugin_next(records, &record));
        return record;
}

/* 2. Records */

static void reply_with(uint64_t number, const struct message *message) {
        outbox_frames_backend.publish_reply(&outbox, &(struct pending_reply){ .record_number = number },
                                            message);
}

static void reply(uint64_t number, size_t n_bytes) {
        uint8_t *payload = calloc(1, n_bytes);

        cr_assert_not_null(payload);
        reply_with(number, &(struct message){ .payload = { payload, n_bytes } });
        free(payload);
}

static void end_batch(uint64_t last_number) {
        struct batch batch = { .last_record_number = last_number, .work_ns = 1000 };

        outbox.batch = &batch;
        outbox_frames_backend.end_batch(&outbox);
}

/* A change with this sequence and a value of n_bytes. */
static void notify_recipients(uint64_t sequence, const struct buf *recipients, size_t n_bytes) {
        uint8_t *payload = calloc(1, n_bytes);
        const struct message message = { .payload = { payload, n_bytes },
                                         .user_properties = { { S("name"), S("value") } },
                                         .n_user_properties = 1 };
        struct pending_notification notification = { .sequence = sequence,
                                                     .key = S("key"),
                                                     .recipients = buf_slice(recipients) };

        cr_assert_not_null(payload);
        outbox_frames_backend.publish_notification(&outbox, &notification, &message,
                                                   &notification.recipients);
        cr_expect_eq(notification.recipients.length, 0);
        free(payload);
}

/* Its recipients are the connections 1 to n. */
static void notify(uint64_t sequence, size_t n_recipients, size_t n_bytes) {
        struct buf recipients = { 0 };

        for (size_t i = 1; i <= n_recipients; i++)
                recipients_append(&recipients, &(struct recipient){ .connection = i, .client_length = 8 });
        notify_recipients(sequence, &recipients, n_bytes);
        buf_deinit(&recipients);
}

Test(outbox_frames, has_the_records_in_their_order) {
        const struct message message = { .payload = S("+OK\r\n"),
                                         .user_properties = { { S("a"), S("b") }, { S("c"), S("") } },
                                         .n_user_properties = 2 };
        struct frame_to_plugin_record record;
        struct user_property property;
        struct slice records;

        notify(7, 2, 10);
        reply_with(3, &message);
        outbox_frames_kick(&outbox, 9);
        cr_expect_eq(n_published, 0);
        end_batch(3);
        outbox_frames_flush(&outbox);
        cr_assert_eq(n_published, 1);

        records = records_of(0);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_NOTIFICATION);
        cr_expect_eq(record.notification.sequence, 7);
        cr_expect(record.notification.is_last);
        cr_expect(slice_equal(record.notification.key, S("key")));
        cr_expect_eq(record.notification.payload.length, 10);
        cr_assert(frame_property_next(&record.notification.properties, &property));
        cr_expect(slice_equal(property.name, S("name")) && slice_equal(property.value, S("value")));
        cr_expect_eq(frame_n_recipients(&record.notification), 2);
        cr_expect_eq(frame_recipient(&record.notification, 1), 2);

        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_REPLY);
        cr_expect_eq(record.reply.record_number, 3);
        cr_expect(record.reply.tracking == FRAME_TRACKING_UNCHANGED && record.reply.has_message);
        cr_expect(slice_equal(record.reply.payload, S("+OK\r\n")));
        cr_assert(frame_property_next(&record.reply.properties, &property));
        cr_expect(slice_equal(property.name, S("a")) && slice_equal(property.value, S("b")));
        cr_assert(frame_property_next(&record.reply.properties, &property));
        cr_expect(slice_equal(property.name, S("c")) && slice_equal(property.value, S("")));
        cr_expect_not(frame_property_next(&record.reply.properties, &property));

        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_KICK);
        cr_expect_eq(record.connection, 9);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_END);
        cr_expect_eq(record.end.record_number, 3);
        cr_expect_eq(record.end.work_ns, 1000);
        cr_expect_eq(records.length, 0);
}

Test(outbox_frames, has_a_reply_without_a_message) {
        struct frame_to_plugin_record record;
        struct slice records;

        reply_with(3, NULL);
        outbox_frames_flush(&outbox);
        records = records_of(0);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_REPLY);
        cr_expect_not(record.reply.has_message);
}

Test(outbox_frames, does_not_count_on_an_acknowledgement) {
        outbox_frames_kick(&outbox, 1);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 1);
        cr_expect_eq(outbox.n_sent, 0, "QoS 0 has no PUBACK");
}

/* Expect that each frame is within the limits, and that it has at least one record. */
static void expect_limits(uint64_t packet_bytes_max) {
        for (size_t i = 0; i < n_published; i++) {
                struct slice records = records_of(i);
                struct frame_to_plugin_record record;
                size_t n_records = 0, n_recipients = 0;

                for (; frame_to_plugin_next(&records, &record); n_records++)
                        if (record.kind == FRAME_NOTIFICATION)
                                n_recipients += frame_n_recipients(&record.notification);
                cr_expect_gt(n_records, 0);
                cr_expect_leq(n_recipients, OUTBOX_FRAMES_RECIPIENTS_MAX);
                cr_expect_leq(message_packet_size(published[i]), packet_bytes_max);
                cr_expect(n_records == 1 || published[i]->payload.length <= OUTBOX_FRAMES_BYTES_MAX);
        }
}

/* Expect the replies 1 to n, each once and in this order, with payloads of this length. */
static void expect_replies(uint64_t n, size_t n_bytes) {
        uint64_t number = 0;

        for (size_t i = 0; i < n_published; i++) {
                struct slice records = records_of(i);
                struct frame_to_plugin_record record;

                while (frame_to_plugin_next(&records, &record)) {
                        cr_expect_eq(record.reply.record_number, ++number);
                        cr_expect_eq(record.reply.payload.length, n_bytes);
                }
        }
        cr_expect_eq(number, n);
}

Test(outbox_frames, has_several_frames_if_the_records_exceed_its_size) {
        for (uint64_t number = 1; number <= 10; number++)
                reply(number, 100000);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 5);
        expect_limits(UINT64_MAX);
        expect_replies(10, 100000);
}

Test(outbox_frames, has_one_record_if_the_record_exceeds_its_size) {
        reply(1, 1 << 20);
        reply(2, 1 << 20);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 2);
        expect_replies(2, 1 << 20);
}

Test(outbox_frames, respects_the_largest_packet) {
        outbox_frames_set_max_packet(&outbox, 1000);
        for (uint64_t number = 1; number <= 50; number++)
                reply(number, 100);
        outbox_frames_flush(&outbox);
        cr_expect_leq(n_published, 10);
        expect_limits(1000);
        expect_replies(50, 100);
}

/* The payload of the only record of a frame. */
static struct slice payload_of(size_t i) {
        struct slice records = records_of(i);
        struct frame_to_plugin_record record = take_record(&records);

        cr_assert_eq(record.kind, FRAME_REPLY);
        cr_expect_eq(records.length, 0);
        return record.reply.payload;
}

Test(outbox_frames, replaces_a_reply_above_the_largest_packet) {
        size_t n_fits = 0;

        outbox_frames_set_max_packet(&outbox, 1000);
        for (size_t n_bytes = 800; n_bytes <= 1000; n_bytes++) {
                reply(1, n_bytes);
                outbox_frames_flush(&outbox);
                if (payload_of(n_published - 1).length == n_bytes)
                        n_fits = n_bytes;
        }
        expect_limits(1000);
        cr_expect(n_fits > 800 && n_fits < 1000);
        cr_expect_eq(message_packet_size(published[n_fits - 800]), 1000, "no byte is wasted");
        cr_expect(slice_starts_with(payload_of(n_fits - 800 + 1), S("-ERR ")));
}

/* The plugin answers each frame without records. */
Test(outbox_frames, publishes_no_frame_if_not_even_an_error_fits) {
        outbox_frames_set_max_packet(&outbox, 80);
        reply(1, 1000);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 0);
        outbox_frames_kick(&outbox, 9);
        reply(2, 1000);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 1);
        expect_limits(80);
}

Test(outbox_frames, limits_the_recipients_of_a_frame) {
        for (uint64_t sequence = 1; sequence <= 10; sequence++)
                notify(sequence, 30, 10);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 4);
        expect_limits(UINT64_MAX);
}

/* Each notification needs more than half of the memory for 20 copies, but not half of a frame. */
Test(outbox_frames, limits_the_memory_of_the_broker) {
        for (uint64_t sequence = 1; sequence <= 4; sequence++)
                notify(sequence, 20, 105000);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 4);
        for (size_t i = 0; i < n_published; i++) {
                size_t broker_bytes = published[i]->broker_bytes - published[i]->payload.length;

                cr_expect_geq(broker_bytes, 20 * (size_t)105000);
                cr_expect_leq(broker_bytes, OUTBOX_FRAMES_BROKER_BYTES_MAX);
        }
}

Test(outbox_frames, fills_each_packet_with_recipients) {
        outbox_frames_set_max_packet(&outbox, 300);
        notify(1, 100, 10);
        outbox_frames_flush(&outbox);
        cr_assert_gt(n_published, 1);
        expect_limits(300);
        for (size_t i = 0; i + 1 < n_published; i++)
                cr_expect_gt(message_packet_size(published[i]), 300 - FRAME_RECIPIENT_SIZE);
        cr_expect_eq(counters.n_notifications_deleted, 100);
}

/* They would wait for it forever. */
Test(outbox_frames, kicks_the_recipients_of_a_notification_above_the_largest_packet) {
        struct slice records;

        outbox_frames_set_max_packet(&outbox, 200);
        notify(1, 2, 1000);
        outbox_frames_flush(&outbox);
        cr_assert_eq(n_published, 1);
        records = records_of(0);
        for (uint64_t connection = 1; connection <= 2; connection++) {
                struct frame_to_plugin_record record = take_record(&records);

                cr_expect_eq(record.kind, FRAME_KICK);
                cr_expect_eq(record.connection, connection);
        }
        cr_expect_eq(records.length, 0);
}

/* The store has served a broker without the plugin before. A kick of connection 0 would be malformed. */
Test(outbox_frames, skips_clients_of_a_plain_broker) {
        struct frame_to_plugin_record record;
        struct buf recipients = { 0 };
        struct slice records;

        recipients_append(&recipients, &(struct recipient){ .client_length = 1, .client = S("c") });
        recipients_append(&recipients, &(struct recipient){ .connection = 5, .client_length = 1 });
        notify_recipients(1, &recipients, 10);
        outbox_frames_set_max_packet(&outbox, 200);
        notify_recipients(2, &recipients, 1000);
        outbox_frames_flush(&outbox);
        cr_assert_eq(n_published, 1);
        records = records_of(0);
        record = take_record(&records);
        cr_expect_eq(frame_n_recipients(&record.notification), 1);
        cr_expect_eq(frame_recipient(&record.notification, 0), 5);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_KICK);
        cr_expect_eq(record.connection, 5);
        cr_expect_eq(records.length, 0);
        buf_deinit(&recipients);
}

Test(outbox_frames, publishes_nothing_after_a_failure_until_it_starts_again) {
        reply(1, 10);
        publish_result = -EAGAIN;
        outbox_frames_flush(&outbox);
        cr_expect_eq(outbox.status, OUTBOX_FAILED);
        publish_result = 0;
        end_batch(1);
        cr_expect_eq(n_published, 0, "the reply is lost, so the request must not end");

        outbox_frames_drop(&outbox);
        outbox_open(&outbox, &outbox_frames_backend);
        cr_expect_eq(outbox.status, OUTBOX_OPEN);
        reply(1, 10);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 1);
        expect_replies(1, 10);
}

Test(outbox_frames, drops_what_is_not_published_when_it_starts_again) {
        reply(1, 10);
        outbox_frames_drop(&outbox);
        outbox_open(&outbox, &outbox_frames_backend);
        outbox_frames_flush(&outbox);
        cr_expect_eq(n_published, 0);
}

/* Notifications are published, and the plugin has not acknowledged them until the deadline. */
Test(outbox_frames, asks_with_a_frame_without_records) {
        outbox.published_sequence = 1;
        outbox.frames.deadline_ns = 5;
        outbox_frames_kick(&outbox, 1);
        outbox_frames_tick(&outbox, (struct now){ .mono_ns = 4 });
        cr_assert_eq(n_published, 0);
        outbox_frames_tick(&outbox, (struct now){ .mono_ns = 5 });
        cr_assert_eq(n_published, 2);
        cr_expect_gt(records_of(0).length, 0);
        cr_expect_eq(records_of(1).length, 0);
        cr_expect_gt(outbox.frames.deadline_ns, 5);

        outbox_close(&outbox);
        outbox_frames_tick(&outbox, (struct now){ .mono_ns = outbox.frames.deadline_ns });
        cr_expect_eq(n_published, 2, "no broker is served");
        cr_expect_eq(outbox.frames.deadline_ns, INT64_MAX);
}
