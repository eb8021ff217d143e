/* SPDX-License-Identifier: Apache-2.0 */

/* Requests in frames of the plugin. */

#include <criterion/criterion.h>

#include "codec/invocation.h"

#define S SLICE_LITERAL

static struct decoder decoder;
static struct buf properties;
static struct frame_to_store_record record;
static struct invocation invocation;

static void setup(void) {
        decoder = (struct decoder){ .persistence_name = "keep", .persistence_value = S("yes") };
        record = (struct frame_to_store_record){
                .kind = FRAME_REQUEST,
                .connection = 7,
                .client_id = S("c"),
                .request = { .qos = 1,
                             .username = S("u"),
                             .response_topic = S("clients/d/x"),
                             .correlation_data = S("1234"),
                             .payload = S("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n") },
        };
}

static void teardown(void) {
        buf_deinit(&properties);
}

TestSuite(record, .init = setup, .fini = teardown);

static void decode(void) {

        record.request.properties = buf_slice(&properties);
        invocation_decode_record(&decoder, &record, &invocation);
}

Test(record, has_the_identity_that_the_broker_vouches_for) {
        frame_property_append(&properties, S("__srcId"), S("other"));
        decode();
        cr_expect_eq(invocation.result, INVOCATION_REQUEST);
        cr_expect_eq(invocation.request.verb, VERB_GET);
        cr_expect(slice_equal(invocation.request.client, S("c")));
        cr_expect(slice_equal(invocation.request.user, S("u")));
        cr_expect_eq(invocation.request.connection, 7);
        cr_expect(slice_equal(invocation.request.key, S("k")));
        cr_expect(slice_equal(invocation.request.response_topic, S("clients/d/x")));
        cr_expect(slice_equal(invocation.request.correlation_data, S("1234")));
}

Test(record, without_a_user_name_has_none) {
        record.request.username = (struct slice){ 0 };
        decode();
        cr_expect_null(invocation.request.user.data);
}

Test(record, has_the_properties_that_are_read) {
        record.request.payload = S("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
        for (size_t i = 0; i < 2 * MESSAGE_USER_PROPERTIES_MAX; i++)
                frame_property_append(&properties, S("other"), S("1"));
        frame_property_append(&properties, S("__ts"), S("1696374425000:0:c"));
        frame_property_append(&properties, S("__ts"), S("not the first"));
        frame_property_append(&properties, S("keep"), S("yes"));
        decode();
        cr_expect_eq(invocation.result, INVOCATION_REQUEST);
        cr_expect(invocation.request.has_timestamp);
        cr_expect_eq(invocation.request.timestamp.wall_ms, INT64_C(1696374425000));
        cr_expect(invocation.request.wants_persistence);
}

Test(record, has_at_most_the_properties_of_a_message) {
        for (size_t i = 0; i < 2 * MESSAGE_USER_PROPERTIES_MAX; i++)
                frame_property_append(&properties, S("__ts"), S("1"));
        frame_property_append(&properties, S("keep"), S("yes"));
        decode();
        cr_expect_not(invocation.request.wants_persistence);
        cr_expect_eq(invocation.outcome, OUTCOME_MALFORMED_TIMESTAMP);
}

Test(record, at_another_qos_is_a_fault) {
        record.request.qos = 2;
        record.request.payload = S("");
        decode();
        cr_expect_eq(invocation.result, INVOCATION_FAULTY);
        cr_expect_eq(invocation.fault, REQUEST_FAULT_QOS);
        cr_expect(slice_equal(invocation.fault_value, S("2")));
}

Test(record, without_a_response_topic_is_dropped) {
        record.request.response_topic = (struct slice){ 0 };
        decode();
        cr_expect_eq(invocation.result, INVOCATION_NO_RESPONSE_TOPIC);
}

Test(record, without_correlation_data_is_a_fault) {
        record.request.correlation_data = (struct slice){ 0 };
        decode();
        cr_expect_eq(invocation.fault, REQUEST_FAULT_CORRELATION);
}
