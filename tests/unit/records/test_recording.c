/* SPDX-License-Identifier: Apache-2.0 */

/* Writing messages as lines, and parsing the lines. */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/cleanup.h"
#include "records/recording.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct message plain = {
        .topic = S("statestore/v1/x"),
        .payload = S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
        .response_topic = S("clients/c/r"),
        .correlation_data = S("1"),
        .qos = 1,
        .has_expiry = true,
        .expiry_s = 10,
        .n_user_properties = 4,
        .user_properties = { { S("__ts"), S("1:2:c") },
                             { S("__srcId"), S("d") },
                             { S("statestore-mac"), S("secret:1") },
                             { S("statestore-client-id"), S("claimed") } },
};

static const struct message binary = {
        .topic = S("t"),
        .payload = S("\xFF\0\r\n"),
        .response_topic = S("clients/c/r"),
        .correlation_data = S("\0\xFE"),
        .qos = 2,
        .n_user_properties = 1,
        .user_properties = { { S("__ts"), S("\xFF\xFE\xFD") } },
};

static const struct message bare = { .topic = S("t"), .correlation_data = S("") };

static const struct {
        const char *name;
        enum recorded_type type;
        const struct message *message;
        const char *line;
} messages[] = {
        { "a start", RECORDED_START, NULL, "{\"type\":\"start\",\"time\":7}\n" },
        { "a request", RECORDED_REQUEST, &plain,
          "{\"type\":\"request\",\"time\":7,\"client\":\"c\",\"verb\":\"GET\",\"key\":\"k\","
          "\"topic\":\"statestore/v1/x\",\"response_topic\":\"clients/c/r\",\"correlation_data\":\"1\","
          "\"qos\":1,\"expiry\":10,\"properties\":[{\"name\":\"__ts\",\"value\":\"1:2:c\"},"
          "{\"name\":\"__srcId\",\"value\":\"d\"}],"
          "\"payload\":\"*2\\u000d\\n$3\\u000d\\nGET\\u000d\\n$1\\u000d\\nk\\u000d\\n\"}\n" },
        { "bytes", RECORDED_REQUEST, &binary,
          "{\"type\":\"request\",\"time\":7,\"client\":\"c\",\"topic\":\"t\","
          "\"response_topic\":\"clients/c/r\",\"correlation_data_base64\":\"AP4=\",\"qos\":2,"
          "\"properties\":[{\"name\":\"__ts\",\"value_base64\":\"//79\"}],"
          "\"payload_base64\":\"/wANCg==\"}\n" },
        { "no optional members", RECORDED_REPLY, &bare,
          "{\"type\":\"answer\",\"time\":7,\"topic\":\"t\",\"correlation_data\":\"\",\"qos\":0,"
          "\"properties\":[],\"payload\":\"\"}\n" },
};

Test(recording, writes_a_line_per_message) {
        for (size_t i = 0; i < N_ROWS(messages); i++) {
                CLEANUP(buf_deinit) struct buf line = { 0 };

                recording_append(&line, messages[i].type, S("c"), messages[i].message, 7);
                cr_expect(slice_equal(buf_slice(&line), slice_from_string(messages[i].line)),
                          "row %zu: %s: %.*s", i, messages[i].name, (int)line.length,
                          (const char *)line.data);
        }
}

static void expect_equal(struct slice read, struct slice written, const char *name) {
        cr_expect(slice_equal(read, written), "%s", name);
        cr_expect_eq(!read.data, !written.data, "%s", name);
}

Test(recording, round_trip_omits_identity_properties) {
        for (size_t i = 1; i < N_ROWS(messages); i++) {
                CLEANUP(recorded_deinit) struct recorded recorded = { 0 };
                const struct message *message = messages[i].message;
                const char *fault = "";

                cr_assert_eq(recording_read(slice_from_string(messages[i].line), &recorded, &fault), 0,
                             "row %zu: %s", i, fault);
                cr_expect_eq(recorded.type, messages[i].type);
                cr_expect_eq(recorded.time_ms, 7);
                expect_equal(recorded.message.topic, message->topic, "topic");
                expect_equal(recorded.message.response_topic, message->response_topic, "response topic");
                expect_equal(recorded.message.correlation_data, message->correlation_data, "correlation");
                cr_expect(slice_equal(recorded.message.payload, message->payload));
                cr_expect_eq(recorded.message.qos, message->qos);
                cr_expect_eq(recorded.message.has_expiry, message->has_expiry);
                cr_expect_eq(recorded.message.expiry_s, message->expiry_s);
                cr_expect_leq(recorded.message.n_user_properties, 2);
                for (size_t j = 0; j < recorded.message.n_user_properties; j++) {
                        expect_equal(recorded.message.user_properties[j].name,
                                     message->user_properties[j].name, "name");
                        expect_equal(recorded.message.user_properties[j].value,
                                     message->user_properties[j].value, "value");
                }
        }
}

#define REPLY "{\"type\":\"answer\",\"time\":7,\"topic\":\"t\",\"qos\":0,"

static const struct {
        const char *name;
        struct slice line;
        const char *fault;
} faults[] = {
        { "nothing", S(""), "a JSON object was expected" },
        { "an incomplete line", S("{\"type\":\"start\",\"ti"), "a JSON object was expected" },
        { "a list", S("[]"), "a JSON object was expected" },
        { "no type", S("{\"time\":7}"), "\"type\" was expected: start, request, answer or notification" },
        { "an unknown type", S("{\"time\":7,\"type\":\"x\"}"),
          "\"type\" was expected: start, request, answer or notification" },
        { "no time", S("{\"type\":\"start\"}"), "\"time\" was expected: milliseconds" },
        { "no payload", S(REPLY "\"properties\":[]}"), "\"topic\" and \"payload\" were expected" },
        { "invalid base64", S(REPLY "\"properties\":[],\"payload_base64\":\"x\"}"),
          "\"topic\" and \"payload\" were expected" },
        { "a payload that is a number", S(REPLY "\"properties\":[],\"payload\":7}"),
          "\"topic\" and \"payload\" were expected" },
        { "correlation data that is a number",
          S(REPLY "\"properties\":[],\"payload\":\"\",\"correlation_data\":7}"),
          "\"correlation_data\" is not a string" },
        { "an invalid QoS",
          S("{\"type\":\"answer\",\"time\":7,\"topic\":\"t\",\"qos\":3,"
            "\"properties\":[],\"payload\":\"\"}"),
          "\"qos\" was expected: 0, 1 or 2" },
        { "no properties", S(REPLY "\"payload\":\"\"}"),
          "\"properties\" was expected: a list of objects with \"name\" and \"value\"" },
        { "a property without a value", S(REPLY "\"properties\":[{\"name\":\"a\"}],\"payload\":\"\"}"),
          "\"properties\" was expected: a list of objects with \"name\" and \"value\"" },
        { "too many properties", S(REPLY "\"properties\":[1,2,3,4,5,6,7,8,9,10,11,12,13],\"payload\":\"\"}"),
          "\"properties\" was expected: a list of objects with \"name\" and \"value\"" },
};

Test(recording, reports_what_was_expected) {
        for (size_t i = 0; i < N_ROWS(faults); i++) {
                struct recorded recorded;
                const char *fault = "";

                cr_assert_eq(recording_read(faults[i].line, &recorded, &fault), -EBADMSG, ROW(faults, i));
                cr_expect_str_eq(fault, faults[i].fault, ROW(faults, i));
        }
}
