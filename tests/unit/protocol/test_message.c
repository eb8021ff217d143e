/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/time_units.h"
#include "protocol/message.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

Test(message, copy_owns_all_its_bytes) {
        char topic[] = "topic", payload[] = "a\0b", name[] = "__ts", value[] = "1:0:n";
        struct message message = {
                .topic = { (uint8_t *)topic, 5 },
                .payload = { (uint8_t *)payload, 3 },
                .response_topic = S("replies"),
                .correlation_data = S("\0\xFF"),
                .qos = 1,
                .has_expiry = true,
                .expiry_s = 7,
                .n_user_properties = 1,
                .user_properties = { { { (uint8_t *)name, 4 }, { (uint8_t *)value, 5 } } },
        };
        struct message *copy = message_copy(&message);

        cr_assert_not_null(copy);
        memset(topic, 'x', sizeof(topic));
        memset(payload, 'x', sizeof(payload));
        memset(name, 'x', sizeof(name));
        memset(value, 'x', sizeof(value));

        cr_expect(slice_equal(copy->topic, S("topic")));
        cr_expect(slice_equal(copy->payload, S("a\0b")));
        cr_expect(slice_equal(copy->response_topic, S("replies")));
        cr_expect(slice_equal(copy->correlation_data, S("\0\xFF")));
        cr_expect_eq(copy->qos, 1);
        cr_expect(copy->has_expiry);
        cr_expect_eq(copy->expiry_s, 7);
        cr_assert_eq(copy->n_user_properties, 1);
        cr_expect(slice_equal(copy->user_properties[0].name, S("__ts")));
        cr_expect(slice_equal(copy->user_properties[0].value, S("1:0:n")));
        free(copy);
}

Test(message, copy_distinguishes_absent_from_empty) {
        struct message message = { .topic = S("t"), .correlation_data = S("") };
        struct message *copy = message_copy(&message);

        cr_assert_not_null(copy);
        cr_expect_not_null(copy->correlation_data.data);
        cr_expect_eq(copy->correlation_data.length, 0);
        cr_expect_null(copy->response_topic.data);
        cr_expect_null(copy->payload.data);
        free(copy);
}

Test(message, size_counts_all_bytes) {
        struct message message = { .topic = S("t") };
        size_t before = message_size(&message);

        message.payload = S("0123456789");
        message.response_topic = S("ab");
        message.correlation_data = S("c");
        message.user_properties[message.n_user_properties++] = (struct user_property){ S("n"), S("vv") };
        cr_expect_eq(message_size(&message), before + 10 + 2 + 1 + 3);
}

Test(message, packet_size_counts_header_and_properties) {
        struct message message = { .topic = S("t") };
        /* header; topic; identifier; properties: their length, format indicator, content type */
        uint64_t least = 2 + (2 + 1) + 2 + (1 + 2 + (3 + strlen(MESSAGE_CONTENT_TYPE)));

        cr_expect_eq(message_packet_size(&message), least);
        message.payload = S("0123456789");
        message.response_topic = S("ab");
        message.correlation_data = S("");
        message.has_expiry = true;
        message.user_properties[message.n_user_properties++] = (struct user_property){ S("n"), S("vv") };
        cr_expect_eq(message_packet_size(&message), least + 10 + (3 + 2) + 3 + 5 + (5 + 3));
}

Test(message, packet_size_grows_with_the_encoding_of_lengths) {
        static uint8_t bytes[300];
        struct message message = { .topic = S("t") };
        uint64_t least = message_packet_size(&message);

        message.payload = (struct slice){ bytes, 128 - (least - 2) };
        cr_expect_eq(message_packet_size(&message), 1 + 2 + 128);
        message.payload.length--;
        cr_expect_eq(message_packet_size(&message), 1 + 1 + 127);

        message.payload.length = 0;
        message.correlation_data = (struct slice){ bytes, 128 - 29 - 3 };
        cr_expect_eq(message_packet_size(&message), least + 128 - 29 + 2); /* both lengths */
}

static const struct {
        const char *name;
        bool has_expiry;
        uint32_t expiry_s;
        int64_t waited_ns;
        uint32_t rest_s;
} expiries[] = {
        { "none", false, 0, 1000 * NS_PER_S, UINT32_MAX },
        { "whole", true, 5, NS_PER_S - 1, 5 },
        { "a second less", true, 5, NS_PER_S, 4 },
        { "passed", true, 5, 5 * NS_PER_S, 0 },
        { "long passed", true, 5, 50 * NS_PER_S, 0 },
        { "the clock was set back", true, 5, -NS_PER_S, 5 },
};

Test(message, expiry_is_reduced_by_the_time_it_waited) {
        for (size_t i = 0; i < N_ROWS(expiries); i++)
                cr_expect_eq(message_expiry_rest_s(expiries[i].has_expiry, expiries[i].expiry_s,
                                                   expiries[i].waited_ns),
                             expiries[i].rest_s, ROW(expiries, i));
}
