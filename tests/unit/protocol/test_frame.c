/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/frame.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define N0   "\0\0\0\0\0\0\0\0"
#define N1   "\0\0\0\0\0\0\0\x01"
#define N2   "\0\0\0\0\0\0\0\x02"
#define N7   "\0\0\0\0\0\0\0\x07"
#define BIG  "\x01\x02\x03\x04\x05\x06\x07\x08"
#define MAX  "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
#define NONE "\0\0\0\0" /* an empty blob */

#define ABSENT "\0\0\0" /* the optional parts of a request */

/* Two properties: a=b, and two empty texts. */
#define PROPERTIES                                                                                          \
        "\0\x01"                                                                                            \
        "a"                                                                                                 \
        "\0\x01"                                                                                            \
        "b"                                                                                                 \
        "\0\0\0\0"
#define PROPERTIES_BLOB "\0\0\0\x0A" PROPERTIES

/* 1. To the store */

#define COUNTERS N1 N2 N7 BIG
#define HEADER   "\x0A" N2 N7 BIG COUNTERS

static const struct {
        const char *name;
        struct slice bytes; /* without the header */
        struct frame_to_store_record record;
} to_store[] = {
        { "a request with all parts",
          S("\x01\x01" BIG "\0\x02id"
            "\x01\0\x01u"
            "\x01\0\x03r/t"
            "\x01\0\x02\xFF\0" PROPERTIES_BLOB "\0\0\0\x03\0\r\n"),
          { .kind = FRAME_REQUEST,
            .connection = 0x0102030405060708,
            .client_id = S("id"),
            .request = { .qos = 1,
                         .username = S("u"),
                         .response_topic = S("r/t"),
                         .correlation_data = S("\xFF\0"),
                         .properties = S(PROPERTIES),
                         .payload = S("\0\r\n") } } },
        { "a request whose optional parts are absent",
          S("\x01\x02" N1 "\0\0" ABSENT NONE NONE),
          { .kind = FRAME_REQUEST, .connection = 1, .client_id = S(""), .request = { .qos = 2 } } },
        { "a request whose optional parts are empty",
          S("\x01\0" N1 "\0\0"
            "\x01\0\0"
            "\x01\0\0"
            "\x01\0\0" NONE NONE),
          { .kind = FRAME_REQUEST,
            .connection = 1,
            .client_id = S(""),
            .request = { .username = S(""), .response_topic = S(""), .correlation_data = S("") } } },
        { "the end of a connection",
          S("\x02\0" N2 "\0\x02id"),
          { .kind = FRAME_DISCONNECTED, .connection = 2, .client_id = S("id") } },
        { "the end of a slow watcher",
          S("\x02\x01" N2 "\0\x02id"),
          { .kind = FRAME_DISCONNECTED, .connection = 2, .client_id = S("id"), .is_slow_watcher = true } },
};

static const struct frame_to_store header = { .frame_number = 2,
                                              .next_record_number = 7,
                                              .published = 0x0102030405060708,
                                              .counters = { 1, 2, 7, 0x0102030405060708 } };

static void expect_optional(struct slice actual, struct slice expected, const char *name) {
        cr_expect_eq(!actual.data, !expected.data, "%s", name);
        cr_expect(slice_equal(actual, expected), "%s", name);
}

static void expect_record(const struct frame_to_store_record *actual,
                          const struct frame_to_store_record *expected, const char *name) {
        const struct frame_request *a = &actual->request, *e = &expected->request;

        cr_expect_eq(actual->kind, expected->kind, "%s", name);
        cr_expect_eq(actual->connection, expected->connection, "%s", name);
        cr_expect(slice_equal(actual->client_id, expected->client_id), "%s", name);
        if (expected->kind == FRAME_DISCONNECTED) {
                cr_expect_eq(actual->is_slow_watcher, expected->is_slow_watcher, "%s", name);
                return;
        }
        cr_expect_eq(a->qos, e->qos, "%s", name);
        expect_optional(a->username, e->username, name);
        expect_optional(a->response_topic, e->response_topic, name);
        expect_optional(a->correlation_data, e->correlation_data, name);
        cr_expect(slice_equal(a->properties, e->properties), "%s", name);
        cr_expect(slice_equal(a->payload, e->payload), "%s", name);
}

Test(frame, to_the_store_is_written_as_specified) {
        struct buf buf = { 0 };

        frame_to_store_append(&buf, &header);
        cr_expect(slice_equal(buf_slice(&buf), S(HEADER)));
        for (size_t i = 0; i < N_ROWS(to_store); i++) {
                buf_reset(&buf);
                frame_to_store_append_record(&buf, &to_store[i].record);
                cr_expect(slice_equal(buf_slice(&buf), to_store[i].bytes), ROW(to_store, i));
                cr_expect_eq(frame_to_store_record_size(&to_store[i].record), buf.length, ROW(to_store, i));
        }
        buf_deinit(&buf);
}

Test(frame, to_the_store_is_read_as_it_was_written) {
        struct frame_to_store_record record;
        struct frame_to_store frame;
        struct buf buf = { 0 };

        frame_to_store_append(&buf, &header);
        for (size_t i = 0; i < N_ROWS(to_store); i++)
                buf_append_slice(&buf, to_store[i].bytes);
        cr_assert_eq(frame_to_store_read(buf_slice(&buf), &frame), 0);
        cr_expect_eq(frame.frame_number, header.frame_number);
        cr_expect_eq(frame.next_record_number, header.next_record_number);
        cr_expect_eq(frame.published, header.published);
        cr_expect_eq(frame.counters.n_too_many, 1);
        cr_expect_eq(frame.counters.n_unavailable, 2);
        cr_expect_eq(frame.counters.n_dropped, 7);
        cr_expect_eq(frame.counters.n_denied, 0x0102030405060708);
        for (size_t i = 0; i < N_ROWS(to_store); i++) {
                cr_assert(frame_to_store_next(&frame, &record), ROW(to_store, i));
                cr_expect_eq(record.number, header.next_record_number + i, ROW(to_store, i));
                expect_record(&record, &to_store[i].record, to_store[i].name);
        }
        cr_expect_not(frame_to_store_next(&frame, &record));
        cr_expect_eq(frame.next_record_number, header.next_record_number + N_ROWS(to_store));
        cr_expect_eq(frame.records.length, 0);
        buf_deinit(&buf);
}

/* Read the header and all records. Returns 0, or -EBADMSG if one of them is malformed. */
static int read_to_store(struct slice bytes) {
        struct frame_to_store frame = { .next_record_number = 99 };
        struct frame_to_store_record record;

        if (frame_to_store_read(bytes, &frame) < 0) {
                cr_expect_eq(frame.next_record_number, 99, "nothing is set");
                return -EBADMSG;
        }
        while (frame_to_store_next(&frame, &record))
                ;
        return frame.records.length > 0 ? -EBADMSG : 0;
}

/* A cut in a record; a cut between two records leaves a frame with fewer records. */
Test(frame, to_the_store_that_is_cut_is_malformed) {
        for (size_t i = 0; i < N_ROWS(to_store); i++) {
                struct buf buf = { 0 };

                buf_append_slice(&buf, S(HEADER));
                buf_append_slice(&buf, to_store[i].bytes);
                for (size_t length = 0; length < buf.length; length++)
                        cr_expect_eq(read_to_store((struct slice){ buf.data, length }),
                                     length == FRAME_TO_STORE_HEADER_SIZE ? 0 : -EBADMSG, "%s: %zu",
                                     to_store[i].name, length);
                buf_deinit(&buf);
        }
}

static const struct {
        const char *name;
        struct slice bytes;
} malformed_to_store[] = {
        { "an earlier version", S("\x09" N1 N1 N0 COUNTERS) },
        { "a later version", S("\x0B" N1 N1 N0 COUNTERS) },
        { "number is 0", S("\x0A" N0 N1 N0 COUNTERS) },
        { "first is 0", S("\x0A" N1 N0 N0 COUNTERS) },
        { "an unknown kind", S(HEADER "\x03\0" N1 "\0\0") },
        { "kind 0", S(HEADER "\0\0" N1 "\0\0") },
        { "an unknown flag of a request", S(HEADER "\x01\x04" N1 "\0\0" ABSENT NONE NONE) },
        { "QoS 3", S(HEADER "\x01\x03" N1 "\0\0" ABSENT NONE NONE) },
        { "connection 0", S(HEADER "\x01\x01" N0 "\0\0" ABSENT NONE NONE) },
        { "a user name that is neither absent nor present", S(HEADER "\x01\x01" N1 "\0\0"
                                                                     "\x02\0\x01u"
                                                                     "\0\0" NONE NONE) },
        { "a property without a value", S(HEADER "\x01\x01" N1 "\0\0" ABSENT "\0\0\0\x03"
                                                 "\0\x01"
                                                 "a" NONE) },
        { "a payload beyond the end", S(HEADER "\x01\x01" N1 "\0\0" ABSENT NONE "\xFF\xFF\xFF\xFF") },
        { "an unknown flag of an end", S(HEADER "\x02\x02" N1 "\0\0") },
        { "a good record before a bad one", S(HEADER "\x02\0" N1 "\0\0"
                                                     "\x02\0" N0 "\0\0") },
        { "a number of a record that exceeds 64 bits", S("\x0A" N1 MAX N0 COUNTERS "\x02\0" N1 "\0\0") },
};

Test(frame, to_the_store_that_is_malformed_is_rejected) {
        for (size_t i = 0; i < N_ROWS(malformed_to_store); i++)
                cr_expect_eq(read_to_store(malformed_to_store[i].bytes), -EBADMSG,
                             ROW(malformed_to_store, i));
}

/* 2. To the plugin */

static const struct {
        const char *name;
        struct slice bytes; /* without the version */
        struct frame_to_plugin_record record;
} to_plugin[] = {
        { "a reply",
          S("\x01\x05" N7 PROPERTIES_BLOB "\0\0\0\x05+OK\r\n"),
          { .kind = FRAME_REPLY,
            .reply = { .record_number = 7,
                       .tracking = FRAME_TRACKED,
                       .has_message = true,
                       .properties = S(PROPERTIES),
                       .payload = S("+OK\r\n") } } },
        { "a reply without a message",
          S("\x01\x02" N7 NONE NONE),
          { .kind = FRAME_REPLY, .reply = { .record_number = 7, .tracking = FRAME_UNTRACKED } } },
        { "an empty reply",
          S("\x01\x04" MAX NONE NONE),
          { .kind = FRAME_REPLY, .reply = { .record_number = UINT64_MAX, .has_message = true } } },
        { "a notification",
          S("\x02\x01" BIG "\0\0\0\x05"
            "\0\0\0\x01k"
            "\0\0\0\x10" N7 BIG PROPERTIES_BLOB "\0\0\0\x01p"),
          { .kind = FRAME_NOTIFICATION,
            .notification = { .sequence = 0x0102030405060708,
                              .index = 5,
                              .is_last = true,
                              .key = S("k"),
                              .recipients = S(N7 BIG),
                              .properties = S(PROPERTIES),
                              .payload = S("p") } } },
        { "a notification to nobody",
          S("\x02\0" N1 "\xFF\xFF\xFF\xFF" NONE NONE NONE NONE),
          { .kind = FRAME_NOTIFICATION, .notification = { .sequence = 1, .index = UINT32_MAX } } },
        { "a kick", S("\x03\0" N7), { .kind = FRAME_KICK, .connection = 7 } },
        { "an end", S("\x04\0" N7 BIG), { .kind = FRAME_END, .end = { 7, 0x0102030405060708 } } },
        { "an end of no record", S("\x04\0" N0 N0), { .kind = FRAME_END } },
};

static void expect_reply(const struct frame_reply *a, const struct frame_reply *e, const char *name) {
        cr_expect_eq(a->record_number, e->record_number, "%s", name);
        cr_expect_eq(a->tracking, e->tracking, "%s", name);
        cr_expect_eq(a->has_message, e->has_message, "%s", name);
        cr_expect(slice_equal(a->properties, e->properties), "%s", name);
        cr_expect(slice_equal(a->payload, e->payload), "%s", name);
}

static void expect_notification(const struct frame_notification *a, const struct frame_notification *e,
                                const char *name) {
        cr_expect_eq(a->sequence, e->sequence, "%s", name);
        cr_expect_eq(a->index, e->index, "%s", name);
        cr_expect_eq(a->is_last, e->is_last, "%s", name);
        cr_expect(slice_equal(a->key, e->key), "%s", name);
        cr_expect(slice_equal(a->recipients, e->recipients), "%s", name);
        cr_expect(slice_equal(a->properties, e->properties), "%s", name);
        cr_expect(slice_equal(a->payload, e->payload), "%s", name);
}

Test(frame, to_the_plugin_is_written_as_specified) {
        struct buf buf = { 0 };

        frame_to_plugin_append(&buf);
        cr_expect(slice_equal(buf_slice(&buf), S("\x0A")));
        cr_expect_eq(buf.length, FRAME_TO_PLUGIN_HEADER_SIZE);
        for (size_t i = 0; i < N_ROWS(to_plugin); i++) {
                buf_reset(&buf);
                frame_to_plugin_append_record(&buf, &to_plugin[i].record);
                cr_expect(slice_equal(buf_slice(&buf), to_plugin[i].bytes), ROW(to_plugin, i));
                cr_expect_eq(frame_to_plugin_record_size(&to_plugin[i].record), buf.length,
                             ROW(to_plugin, i));
        }
        buf_deinit(&buf);
}

Test(frame, to_the_plugin_is_read_as_it_was_written) {
        struct frame_to_plugin_record record;
        struct slice records;
        struct buf buf = { 0 };

        frame_to_plugin_append(&buf);
        for (size_t i = 0; i < N_ROWS(to_plugin); i++)
                buf_append_slice(&buf, to_plugin[i].bytes);
        cr_assert_eq(frame_to_plugin_read(buf_slice(&buf), &records), 0);
        for (size_t i = 0; i < N_ROWS(to_plugin); i++) {
                const struct frame_to_plugin_record *expected = &to_plugin[i].record;

                cr_assert(frame_to_plugin_next(&records, &record), ROW(to_plugin, i));
                cr_assert_eq(record.kind, expected->kind, ROW(to_plugin, i));
                if (record.kind == FRAME_REPLY)
                        expect_reply(&record.reply, &expected->reply, to_plugin[i].name);
                else if (record.kind == FRAME_NOTIFICATION)
                        expect_notification(&record.notification, &expected->notification,
                                            to_plugin[i].name);
                else if (record.kind == FRAME_KICK)
                        cr_expect_eq(record.connection, expected->connection, ROW(to_plugin, i));
                else
                        cr_expect(record.end.record_number == expected->end.record_number &&
                                          record.end.work_ns == expected->end.work_ns,
                                  ROW(to_plugin, i));
        }
        cr_expect_not(frame_to_plugin_next(&records, &record));
        buf_deinit(&buf);
}

Test(frame, to_the_plugin_that_is_cut_is_malformed) {
        for (size_t i = 0; i < N_ROWS(to_plugin); i++) {
                struct slice records;
                struct buf buf = { 0 };

                frame_to_plugin_append(&buf);
                buf_append_slice(&buf, to_plugin[i].bytes);
                for (size_t length = 0; length < buf.length; length++)
                        cr_expect_eq(frame_to_plugin_read((struct slice){ buf.data, length }, &records),
                                     length == 1 ? 0 : -EBADMSG, "%s: %zu", to_plugin[i].name, length);
                buf_deinit(&buf);
        }
}

static const struct {
        const char *name;
        struct slice bytes;
} malformed_to_plugin[] = {
        { "absent", { 0 } },
        { "another version", S("\x07") },
        { "an unknown kind", S("\x0A\x05\0" N1) },
        { "an unknown flag of a reply", S("\x0A\x01\x08" N7 NONE NONE) },
        { "tracked and untracked", S("\x0A\x01\x07" N7 NONE NONE) },
        { "a payload without a message", S("\x0A\x01\0" N7 NONE "\0\0\0\x01p") },
        { "properties without a message", S("\x0A\x01\0" N7 PROPERTIES_BLOB NONE) },
        { "a reply to 0", S("\x0A\x01\x04" N0 NONE NONE) },
        { "sequence 0", S("\x0A\x02\x01" N0 NONE NONE NONE NONE NONE) },
        { "an unknown flag of a notification", S("\x0A\x02\x02" N1 NONE NONE NONE NONE NONE) },
        { "part of a recipient", S("\x0A\x02\x01" N1 NONE NONE "\0\0\0\x07\0\0\0\0\0\0\0" NONE NONE) },
        { "an index that exceeds 32 bits",
          S("\x0A\x02\x01" N1 "\xFF\xFF\xFF\xFF" NONE "\0\0\0\x08" N7 NONE NONE) },
        { "a property without a value", S("\x0A\x02\x01" N1 NONE NONE NONE "\0\0\0\x02\0\0" NONE) },
        { "a kick of 0", S("\x0A\x03\0" N0) },
        { "a kick with a flag", S("\x0A\x03\x01" N1) },
        { "a good record before a bad one", S("\x0A\x03\0" N1 "\x03\0" N0) },
};

Test(frame, to_the_plugin_that_is_malformed_is_rejected) {
        struct slice records;

        for (size_t i = 0; i < N_ROWS(malformed_to_plugin); i++)
                cr_expect_eq(frame_to_plugin_read(malformed_to_plugin[i].bytes, &records), -EBADMSG,
                             ROW(malformed_to_plugin, i));
}

Test(frame, lists_its_recipients_and_properties) {
        struct frame_notification notification = { .recipients = S(N7 BIG) };
        struct slice properties = S(PROPERTIES);
        struct user_property property;
        struct buf buf = { 0 };

        cr_assert_eq(frame_n_recipients(&notification), 2);
        cr_expect_eq(frame_recipient(&notification, 0), 7);
        cr_expect_eq(frame_recipient(&notification, 1), 0x0102030405060708);
        frame_recipient_append(&buf, 7);
        frame_recipient_append(&buf, 0x0102030405060708);
        cr_expect(slice_equal(buf_slice(&buf), notification.recipients));

        buf_reset(&buf);
        cr_assert(frame_property_next(&properties, &property));
        cr_expect(slice_equal(property.name, S("a")) && slice_equal(property.value, S("b")));
        frame_property_append(&buf, property.name, property.value);
        cr_assert(frame_property_next(&properties, &property));
        cr_expect(property.name.length == 0 && property.value.length == 0);
        frame_property_append(&buf, property.name, property.value);
        cr_expect_not(frame_property_next(&properties, &property));
        cr_expect(slice_equal(buf_slice(&buf), S(PROPERTIES)));
        buf_deinit(&buf);
}
