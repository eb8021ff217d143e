/* SPDX-License-Identifier: Apache-2.0 */

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

static int keep(void *userdata, const struct message *message, uint16_t *ret_id) {
        (void)userdata;
        if (publish_result < 0)
                return publish_result;
        cr_assert_lt(n_published, ARRAY_LENGTH(published));
        published[n_published] = message_copy(message);
        cr_assert_not_null(published[n_published]);
        n_published++;
        *ret_id = 0;
        return 0;
}

static const struct transport transport = { .publish = keep };
static struct counters counters;
static struct drops drops;
static struct quantum quantum;
static struct state state; /* without pending notifications */
static struct outbox outbox;
static struct outbox_frames frames;

static void setup(void) {
        publish_result = 0;
        drops.counters = &counters;
        outbox = (struct outbox){
                .state = &state, .transport = &transport, .drops = &drops, .quantum = &quantum
        };
        frames = (struct outbox_frames){ .outbox = &outbox, .deadline_ns = INT64_MAX };
        outbox_open(&outbox, &outbox_frames_backend, &frames);
}

static void teardown(void) {
        while (n_published > 0)
                free(published[--n_published]);
        outbox_frames_deinit(&frames);
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

static int reply(uint64_t number, size_t n_bytes) {
        uint8_t *payload = calloc(1, n_bytes);
        const struct message message = { .payload = { payload, n_bytes } };
        int r;

        cr_assert_not_null(payload);
        r = outbox_frames_reply(&frames, &(struct frame_reply){ .number = number }, &message);
        free(payload);
        return r;
}

static int notify(uint64_t sequence, size_t n_recipients, size_t broker_bytes) {
        const struct message message = { .payload = S("changed") };
        struct frame_notification notification = { .sequence = sequence, .key = S("key"), .is_last = true };
        struct buf recipients = { 0 };
        int r;

        for (size_t i = 1; i <= n_recipients; i++)
                frame_recipient_append(&recipients, i);
        notification.recipients = buf_slice(&recipients);
        r = outbox_frames_notification(&frames, &notification, &message, broker_bytes);
        buf_deinit(&recipients);
        return r;
}

Test(outbox_frames, has_the_records_in_their_order) {
        const struct message message = { .payload = S("+OK\r\n"),
                                         .user_properties = { { S("a"), S("b") }, { S("c"), S("") } },
                                         .n_user_properties = 2 };
        struct frame_to_plugin_record record;
        struct user_property property;
        struct slice records;

        cr_expect_eq(notify(7, 2, 0), 0);
        cr_expect_eq(outbox_frames_reply(&frames,
                                         &(struct frame_reply){ .number = 3, .tracking = FRAME_TRACKED },
                                         &message),
                     0);
        outbox_frames_kick(&frames, 9);
        outbox_frames_end(&frames, 3, 1000);
        cr_expect_eq(n_published, 0);
        outbox_frames_flush(&frames);
        outbox_frames_flush(&frames);
        cr_assert_eq(n_published, 1);

        records = records_of(0);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_NOTIFICATION);
        cr_expect_eq(record.notification.sequence, 7);
        cr_expect(record.notification.is_last);
        cr_expect(slice_equal(record.notification.key, S("key")));
        cr_expect(slice_equal(record.notification.payload, S("changed")));
        cr_expect_eq(record.notification.properties.length, 0);
        cr_expect_eq(frame_n_recipients(&record.notification), 2);
        cr_expect_eq(frame_recipient(&record.notification, 1), 2);

        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_REPLY);
        cr_expect_eq(record.reply.number, 3);
        cr_expect(record.reply.tracking == FRAME_TRACKED && record.reply.has_message);
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
        cr_expect_eq(record.end.number, 3);
        cr_expect_eq(record.end.execution_ns, 1000);
        cr_expect_eq(records.length, 0);
}

Test(outbox_frames, has_a_reply_without_a_message) {
        struct frame_to_plugin_record record;
        struct slice records;

        outbox_frames_reply(&frames, &(struct frame_reply){ .number = 3, .tracking = FRAME_UNTRACKED },
                            NULL);
        outbox_frames_flush(&frames);
        records = records_of(0);
        record = take_record(&records);
        cr_expect_eq(record.kind, FRAME_REPLY);
        cr_expect(record.reply.tracking == FRAME_UNTRACKED && !record.reply.has_message);
}

Test(outbox_frames, does_not_count_on_an_acknowledgement) {
        outbox_frames_kick(&frames, 1);
        outbox_frames_flush(&frames);
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
                        cr_expect_eq(record.reply.number, ++number);
                        cr_expect_eq(record.reply.payload.length, n_bytes);
                }
        }
        cr_expect_eq(number, n);
}

Test(outbox_frames, has_several_frames_if_the_records_exceed_its_size) {
        for (uint64_t number = 1; number <= 10; number++)
                cr_expect_eq(reply(number, 100000), 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 5);
        expect_limits(UINT64_MAX);
        expect_replies(10, 100000);
}

Test(outbox_frames, has_one_record_if_the_record_exceeds_its_size) {
        cr_expect_eq(reply(1, 1 << 20), 0);
        cr_expect_eq(reply(2, 1 << 20), 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 2);
        expect_replies(2, 1 << 20);
}

Test(outbox_frames, respects_the_largest_packet) {
        frames.packet_bytes_max = 1000;
        for (uint64_t number = 1; number <= 50; number++)
                cr_expect_eq(reply(number, 100), 0);
        outbox_frames_flush(&frames);
        cr_expect_leq(n_published, 10);
        expect_limits(1000);
        expect_replies(50, 100);
}

Test(outbox_frames, refuses_a_record_above_the_largest_packet) {
        size_t n_fits = 0, n_before;

        frames.packet_bytes_max = 1000;
        for (size_t n_bytes = 800; n_bytes <= 1000; n_bytes++)
                if (reply(1, n_bytes) == 0)
                        n_fits = n_bytes;
        cr_expect(n_fits > 800 && n_fits < 1000);
        outbox_frames_flush(&frames);
        expect_limits(1000);
        cr_expect_eq(message_packet_size(published[n_published - 1]), 1000, "no byte is wasted");
        n_before = n_published;
        cr_expect_eq(reply(1, 1000), -EMSGSIZE);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, n_before, "the plugin answers each frame without records");
        cr_expect_eq(reply(2, 10), 0);
        cr_expect_eq(reply(3, 1000), -EMSGSIZE);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, n_before + 1);
        expect_limits(1000);
}

Test(outbox_frames, limits_the_recipients_of_a_frame) {
        for (uint64_t sequence = 1; sequence <= 10; sequence++)
                cr_expect_eq(notify(sequence, 30, 0), 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 4);
        expect_limits(UINT64_MAX);
}

Test(outbox_frames, limits_the_memory_of_the_broker) {
        for (uint64_t sequence = 1; sequence <= 4; sequence++)
                cr_expect_eq(notify(sequence, 1, OUTBOX_FRAMES_BROKER_BYTES_MAX / 2), 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 2);
        cr_expect_eq(published[0]->broker_bytes,
                     OUTBOX_FRAMES_BROKER_BYTES_MAX + published[0]->payload.length);
}

Test(outbox_frames, says_how_many_recipients_fit) {
        const struct message message = { .payload = S("changed"),
                                         .user_properties = { { S("name"), S("value") } },
                                         .n_user_properties = 1 };
        struct buf recipients = { 0 };
        struct frame_notification notification = { .sequence = 1, .key = S("key") };
        size_t n;

        cr_expect_eq(outbox_frames_n_recipients_max(&frames, S("key"), &message),
                     OUTBOX_FRAMES_RECIPIENTS_MAX);
        frames.packet_bytes_max = 300;
        n = outbox_frames_n_recipients_max(&frames, S("key"), &message);
        cr_expect(n > 0 && n < OUTBOX_FRAMES_RECIPIENTS_MAX);
        for (size_t i = 1; i <= n; i++)
                frame_recipient_append(&recipients, i);
        notification.recipients = buf_slice(&recipients);
        cr_expect_eq(outbox_frames_notification(&frames, &notification, &message, 0), 0);
        frame_recipient_append(&recipients, n + 1);
        notification.recipients = buf_slice(&recipients);
        cr_expect_eq(outbox_frames_notification(&frames, &notification, &message, 0), -EMSGSIZE);
        frames.packet_bytes_max = 50;
        cr_expect_eq(outbox_frames_n_recipients_max(&frames, S("key"), &message), 0);
        buf_deinit(&recipients);
}

Test(outbox_frames, publishes_nothing_after_a_failure_until_it_starts_again) {
        cr_expect_eq(reply(1, 10), 0);
        publish_result = -EAGAIN;
        outbox_frames_flush(&frames);
        cr_expect(outbox.has_failed);
        publish_result = 0;
        outbox_frames_end(&frames, 1, 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 0, "the reply is lost, so the request must not end");

        outbox_frames_start(&frames);
        outbox_open(&outbox, &outbox_frames_backend, &frames);
        cr_expect_not(outbox.has_failed);
        cr_expect_eq(reply(1, 10), 0);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 1);
        expect_replies(1, 10);
}

Test(outbox_frames, drops_what_is_not_published_when_it_starts_again) {
        cr_expect_eq(reply(1, 10), 0);
        outbox_frames_start(&frames);
        outbox_open(&outbox, &outbox_frames_backend, &frames);
        outbox_frames_flush(&frames);
        cr_expect_eq(n_published, 0);
}

/* Notifications are published, and the plugin has not acknowledged them until the deadline. */
Test(outbox_frames, asks_with_a_frame_without_records) {
        outbox.published_sequence = 1;
        frames.deadline_ns = 5;
        outbox_frames_kick(&frames, 1);
        outbox_frames_tick(&frames, (struct now){ .mono_ns = 4 });
        cr_assert_eq(n_published, 0);
        outbox_frames_tick(&frames, (struct now){ .mono_ns = 5 });
        cr_assert_eq(n_published, 2);
        cr_expect_gt(records_of(0).length, 0);
        cr_expect_eq(records_of(1).length, 0);
        cr_expect_gt(frames.deadline_ns, 5);

        outbox_close(&outbox);
        outbox_frames_tick(&frames, (struct now){ .mono_ns = frames.deadline_ns });
        cr_expect_eq(n_published, 2, "no broker is served");
        cr_expect_eq(frames.deadline_ns, INT64_MAX);
}
