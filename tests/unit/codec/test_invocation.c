/* SPDX-License-Identifier: Apache-2.0 */

/*
 * MQTT properties of requests (PROTOCOL.md "Requests"), and checks 6 and 7 of PROTOCOL.md "Errors".
 */

#include <criterion/criterion.h>

#include "codec/invocation.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define PAYLOAD_SET       S("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n")
#define PAYLOAD_GET       S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
#define PAYLOAD_DEL       S("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n")
#define PAYLOAD_VDEL      S("*3\r\n$4\r\nVDEL\r\n$1\r\nk\r\n$1\r\nv\r\n")
#define PAYLOAD_KEYNOTIFY S("*2\r\n$9\r\nKEYNOTIFY\r\n$1\r\nk\r\n")
#define PAYLOAD_SCAN      S("*2\r\n$4\r\nSCAN\r\n$1\r\n*\r\n")

static struct buf properties;

/* A request without user properties. */
static struct frame_to_store_record request_of(struct slice payload) {
        buf_reset(&properties);
        return (struct frame_to_store_record){
                .kind = FRAME_REQUEST,
                .number = 5,
                .connection = 7,
                .client_id = S("c"),
                .request = { .qos = 1,
                             .username = S("u"),
                             .response_topic = S("replies"),
                             .correlation_data = S("1234"),
                             .payload = payload },
        };
}

static void add(struct slice name, struct slice value) {
        if (value.data)
                frame_property_append(&properties, name, value);
}

/* Returns whether the request may be executed. */
static bool decode(struct frame_to_store_record *record, struct invocation *ret_invocation) {
        const struct decoder decoder = { .persistence_name = "keep", .persistence_value = S("yes") };

        record->request.properties = buf_slice(&properties);
        invocation_decode(&decoder, record, ret_invocation);
        return ret_invocation->has_response_topic && invocation_is_accepted(ret_invocation);
}

static const struct {
        const char *name;
        uint8_t qos;
        struct slice correlation, version;
        enum request_fault fault;
        struct slice value;
} property_sets[] = {
        { "QoS 1", 1, S("1"), { NULL, 0 }, REQUEST_FAULT_NONE, { NULL, 0 } },
        { "QoS 0", 0, S("1"), { NULL, 0 }, REQUEST_FAULT_QOS, S("0") },
        { "QoS 2", 2, S("1"), { NULL, 0 }, REQUEST_FAULT_QOS, S("2") },
        { "no correlation data", 1, { NULL, 0 }, { NULL, 0 }, REQUEST_FAULT_CORRELATION, S("") },
        { "empty correlation data", 1, S(""), { NULL, 0 }, REQUEST_FAULT_NONE, { NULL, 0 } },
        { "version 1.0", 1, S("1"), S("1.0"), REQUEST_FAULT_NONE, { NULL, 0 } },
        { "version 1.99", 1, S("1"), S("1.99"), REQUEST_FAULT_NONE, { NULL, 0 } },
        { "version 0.1", 1, S("1"), S("0.1"), REQUEST_FAULT_NONE, { NULL, 0 } },
        { "version 2.0", 1, S("1"), S("2.0"), REQUEST_FAULT_VERSION, S("2.0") },
        { "version 10.0", 1, S("1"), S("10.0"), REQUEST_FAULT_VERSION, S("10.0") },
        { "version past 64 bits", 1, S("1"), S("18446744073709551617.0"), REQUEST_FAULT_VERSION,
          S("18446744073709551617.0") },
        { "a version that is empty", 1, S("1"), S(""), REQUEST_FAULT_VERSION, S("") },
        { "a version without a minor", 1, S("1"), S("1"), REQUEST_FAULT_VERSION, S("1") },
        { "a version with an empty minor", 1, S("1"), S("1."), REQUEST_FAULT_VERSION, S("1.") },
        { "a version of three parts", 1, S("1"), S("1.0.0"), REQUEST_FAULT_VERSION, S("1.0.0") },
        { "a version that is not a number", 1, S("1"), S("one"), REQUEST_FAULT_VERSION, S("one") },
        { "a negative version", 1, S("1"), S("-1.0"), REQUEST_FAULT_VERSION, S("-1.0") },
};

Test(property_set, is_checked_before_the_payload) {
        static const struct slice payloads[] = { PAYLOAD_GET, S("no RESP3 at all") };

        for (size_t i = 0; i < N_ROWS(property_sets); i++)
                for (size_t j = 0; j < 2; j++) {
                        struct frame_to_store_record record = request_of(payloads[j]);
                        bool is_faulty = property_sets[i].fault != REQUEST_FAULT_NONE;
                        struct invocation invocation;

                        record.request.qos = property_sets[i].qos;
                        record.request.correlation_data = property_sets[i].correlation;
                        add(S("__protVer"), property_sets[i].version);
                        cr_expect_eq(decode(&record, &invocation), !is_faulty && j == 0,
                                     ROW(property_sets, i));
                        cr_expect_eq(invocation.outcome,
                                     is_faulty || j == 0 ? OUTCOME_DONE : OUTCOME_SYNTAX_ERROR,
                                     ROW(property_sets, i));
                        cr_expect_eq(invocation.fault, property_sets[i].fault, ROW(property_sets, i));
                        if (is_faulty)
                                cr_expect(slice_equal(invocation.fault_value, property_sets[i].value),
                                          ROW(property_sets, i));
                }
}

static const struct {
        const char *name;
        struct slice topic;
        bool is_valid;
} topics[] = {
        { "a valid topic", S("clients/c/replies"), true },
        { "none", { NULL, 0 }, false },
        { "empty", S(""), false },
        { "a wildcard", S("clients/+/replies"), false },
        { "the invoke topic", S("statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"),
          false },
        { "the notify prefix", S("clients/statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/x"), false },
        { "not UTF-8", S("\xFF"), false },
};

Test(response_topic, is_checked_with_every_error) {
        for (size_t i = 0; i < N_ROWS(topics); i++)
                for (size_t j = 0; j < 3; j++) {
                        struct frame_to_store_record record =
                                request_of(j == 0 ? PAYLOAD_GET : S("no RESP3 at all"));
                        struct invocation invocation;

                        record.request.response_topic = topics[i].topic;
                        record.request.qos = j == 2 ? 0 : 1;
                        cr_expect_eq(decode(&record, &invocation), topics[i].is_valid && j == 0,
                                     ROW(topics, i));
                        cr_expect_eq(invocation.has_response_topic, topics[i].is_valid, ROW(topics, i));
                }
}

static const struct {
        const char *name;
        struct slice payload, timestamp, fence;
        enum outcome outcome;
        bool has_fence;
} clocks[] = {
        { "SET with a timestamp", PAYLOAD_SET, S("5:6:n"), { NULL, 0 }, OUTCOME_DONE, false },
        { "SET with a timestamp and a token", PAYLOAD_SET, S("5:6:n"), S("7:8:m"), OUTCOME_DONE, true },
        { "SET without a timestamp",
          PAYLOAD_SET,
          { NULL, 0 },
          { NULL, 0 },
          OUTCOME_MISSING_TIMESTAMP,
          false },
        { "SET without a timestamp, its token malformed",
          PAYLOAD_SET,
          { NULL, 0 },
          S("x"),
          OUTCOME_MISSING_TIMESTAMP,
          true },
        { "SET with an empty timestamp",
          PAYLOAD_SET,
          S(""),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
        { "SET with a malformed timestamp",
          PAYLOAD_SET,
          S("5:6"),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
        { "SET with a malformed token", PAYLOAD_SET, S("5:6:n"), S("7:8:"), OUTCOME_MALFORMED_TIMESTAMP,
          true },
        { "SET with an empty token", PAYLOAD_SET, S("5:6:n"), S(""), OUTCOME_MALFORMED_TIMESTAMP, true },
        { "DEL without a token", PAYLOAD_DEL, { NULL, 0 }, { NULL, 0 }, OUTCOME_DONE, false },
        { "DEL with a token", PAYLOAD_DEL, { NULL, 0 }, S("7:8:m"), OUTCOME_DONE, true },
        { "DEL with a malformed token",
          PAYLOAD_DEL,
          { NULL, 0 },
          S("7:8"),
          OUTCOME_MALFORMED_TIMESTAMP,
          true },
        { "DEL with a malformed timestamp",
          PAYLOAD_DEL,
          S("a:b:c"),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
        { "VDEL with a malformed token",
          PAYLOAD_VDEL,
          { NULL, 0 },
          S("x"),
          OUTCOME_MALFORMED_TIMESTAMP,
          true },
        { "GET without a timestamp", PAYLOAD_GET, { NULL, 0 }, { NULL, 0 }, OUTCOME_DONE, false },
        { "GET with a malformed timestamp",
          PAYLOAD_GET,
          S("5:6:"),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
        { "GET ignores a token", PAYLOAD_GET, { NULL, 0 }, S("7:8:m"), OUTCOME_DONE, false },
        { "GET ignores a malformed token", PAYLOAD_GET, { NULL, 0 }, S("x"), OUTCOME_DONE, false },
        { "KEYNOTIFY ignores a malformed token",
          PAYLOAD_KEYNOTIFY,
          { NULL, 0 },
          S("x"),
          OUTCOME_DONE,
          false },
        { "KEYNOTIFY with a malformed timestamp",
          PAYLOAD_KEYNOTIFY,
          S("x"),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
        { "SCAN ignores a malformed token", PAYLOAD_SCAN, { NULL, 0 }, S("x"), OUTCOME_DONE, false },
        { "SCAN with a malformed timestamp",
          PAYLOAD_SCAN,
          S("x"),
          { NULL, 0 },
          OUTCOME_MALFORMED_TIMESTAMP,
          false },
};

Test(clocks, are_parsed_for_verbs_that_use_them) {
        for (size_t i = 0; i < N_ROWS(clocks); i++) {
                struct frame_to_store_record record = request_of(clocks[i].payload);
                struct invocation invocation;
                struct request *request = &invocation.request;

                add(S("__ts"), clocks[i].timestamp);
                add(S("__ft"), clocks[i].fence);
                decode(&record, &invocation);
                cr_assert_eq(invocation.outcome, clocks[i].outcome, ROW(clocks, i));
                if (invocation.outcome != OUTCOME_DONE)
                        continue;

                cr_expect_eq(request->has_timestamp, clocks[i].timestamp.data != NULL, ROW(clocks, i));
                if (request->has_timestamp)
                        cr_expect_eq(hlc_compare(request->timestamp, (struct hlc){ 5, 6, S("n") }), 0,
                                     ROW(clocks, i));
                cr_expect_eq(request->has_fence, clocks[i].has_fence, ROW(clocks, i));
                if (request->has_fence)
                        cr_expect_eq(hlc_compare(request->fence, (struct hlc){ 7, 8, S("m") }), 0,
                                     ROW(clocks, i));
        }
}

Test(clocks, are_checked_after_the_payload) {
        struct frame_to_store_record record = request_of(S("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"));
        struct invocation invocation;

        add(S("__ts"), S("malformed"));
        decode(&record, &invocation);
        cr_expect_eq(invocation.outcome, OUTCOME_EMPTY_KEY);
}

Test(invocation, keeps_the_fields_that_identify_a_repeated_request) {
        struct frame_to_store_record record = request_of(PAYLOAD_SET);
        struct invocation invocation;
        struct request *request = &invocation.request;

        add(S("__ts"), S("0005:06:n"));
        add(S("__ft"), S("7:8:m"));
        cr_assert(decode(&record, &invocation));
        cr_expect(slice_equal(request->response_topic, S("replies")));
        cr_expect(slice_equal(request->correlation_data, S("1234")));
        cr_expect(slice_equal(request->payload, record.request.payload));
        cr_expect(slice_equal(request->timestamp_text, S("0005:06:n")));
        cr_expect(slice_equal(request->fence_text, S("7:8:m")));
}

Test(invocation, ignores_unknown_properties) {
        struct frame_to_store_record record = request_of(PAYLOAD_GET);
        struct invocation invocation;

        add(S("$partition"), S("c"));
        add(S("$high_priority"), S(""));
        add(S("__TS"), S("malformed"));
        add(S("__ts "), S("malformed"));
        add(S(""), S(""));
        cr_expect(decode(&record, &invocation));
        cr_expect_not(invocation.request.has_timestamp);
}

Test(invocation, has_the_identity_of_the_record) {
        struct frame_to_store_record record = request_of(PAYLOAD_GET);
        struct invocation invocation;

        add(S("__srcId"), S("other"));
        cr_assert(decode(&record, &invocation));
        cr_expect(slice_equal(invocation.request.client, S("c")));
        cr_expect(slice_equal(invocation.request.user, S("u")));
        cr_expect_eq(invocation.request.number, 5);
        cr_expect_eq(invocation.request.connection, 7);
        record.request.username = (struct slice){ 0 };
        decode(&record, &invocation);
        cr_expect_null(invocation.request.user.data);
}

Test(invocation, reads_the_first_of_several_properties_with_one_name) {
        struct frame_to_store_record record = request_of(PAYLOAD_SET);
        struct invocation invocation;

        for (size_t i = 0; i < 2 * MESSAGE_USER_PROPERTIES_MAX; i++)
                add(S("other"), S("1"));
        add(S("__ts"), S("1696374425000:0:c"));
        for (size_t i = 0; i < 2 * MESSAGE_USER_PROPERTIES_MAX; i++)
                add(S("__ts"), S("not the first"));
        add(S("keep"), S("yes"));
        cr_assert(decode(&record, &invocation));
        cr_expect_eq(invocation.request.timestamp.wall_ms, INT64_C(1696374425000));
        cr_expect(invocation.request.wants_persistence);
}

static const struct {
        const char *name;
        const char *persistence_name; /* of the decoder */
        struct slice property, value;
        bool wants_persistence;
} persistences[] = {
        { "asked for", "aio-persistence", S("aio-persistence"), S("true"), true },
        { "property absent", "aio-persistence", S("aio-persistence"), { NULL, 0 }, false },
        { "another value", "aio-persistence", S("aio-persistence"), S("True"), false },
        { "an empty value", "aio-persistence", S("aio-persistence"), S(""), false },
        { "another property", "aio-persistence", S("AIO-persistence"), S("true"), false },
        { "another configured name", "keep", S("keep"), S("true"), true },
        { "no name configured", NULL, S("aio-persistence"), S("true"), false },
};

Test(persistence, is_requested_by_a_user_property) {
        for (size_t i = 0; i < N_ROWS(persistences); i++) {
                struct decoder decoder = { .persistence_name = persistences[i].persistence_name,
                                           .persistence_value = S("true") };
                struct frame_to_store_record record = request_of(PAYLOAD_SET);
                struct invocation invocation;

                add(S("__ts"), S("5:6:n"));
                add(persistences[i].property, persistences[i].value);
                record.request.properties = buf_slice(&properties);
                invocation_decode(&decoder, &record, &invocation);
                cr_expect(invocation_is_accepted(&invocation), ROW(persistences, i));
                cr_expect_eq(invocation.request.wants_persistence, persistences[i].wants_persistence,
                             ROW(persistences, i));
        }
}

Test(invocation, asks_for_details_by_a_user_property) {
        static const struct slice values[] = { S("1"), S("0"), S(""), S("11"), S("true") };

        for (size_t i = 0; i < N_ROWS(values); i++) {
                struct frame_to_store_record record = request_of(PAYLOAD_GET);
                struct invocation invocation;

                add(S("details"), values[i]);
                cr_expect(decode(&record, &invocation));
                cr_expect_eq(invocation.request.wants_details, i == 0, "row %zu", i);
        }
}

static bool is_read(const struct decoder *decoder, const char *name) {
        struct slice names[N_REQUEST_PROPERTIES + 1];

        invocation_properties(decoder, names);
        for (size_t i = 0; names[i].data; i++)
                if (slice_equal(names[i], slice_from_string(name)))
                        return true;
        return false;
}

Test(invocation, names_the_properties_that_it_reads) {
        static const char *const read[] = { "__ts", "__ft", "__srcId", "__protVer", "details" };
        struct decoder plain = { 0 }, persistent = { .persistence_name = "keep" };

        for (size_t i = 0; i < N_ROWS(read); i++) {
                cr_expect(is_read(&plain, read[i]), "%s", read[i]);
                cr_expect(is_read(&persistent, read[i]), "%s", read[i]);
        }
        cr_expect(is_read(&persistent, "keep"));
        cr_expect_not(is_read(&plain, "keep"));
}
