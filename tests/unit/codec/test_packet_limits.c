/* SPDX-License-Identifier: Apache-2.0 */

/* The packet limits that the encoder calculates, compared with the largest packets. */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "codec/encoder.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"
#include "unit/support/table.h"

/* The largest counter of a version: engine/clock.h. */
#define LONGEST ((struct version){ INT64_MAX, INT32_MAX - 1 })

/* From this length of an MQTT packet on, its Remaining Length has 4 bytes. */
#define VALUE_BYTES (1 << 21)

static uint8_t zeros[VALUE_BYTES];
static char node_id[NODE_ID_MAX + 1];
static struct encoder encoder;

static struct slice zeros_of(size_t length) {
        return (struct slice){ zeros, length };
}

static void use(enum dialect dialect, size_t node_length) {
        memset(node_id, 'n', node_length);
        encoder.dialect = dialect;
        encoder.node_id = (struct slice){ (const uint8_t *)node_id, node_length };
}

static void teardown(void) {
        encoder_deinit(&encoder);
}

TestSuite(packet_limits, .fini = teardown);

/* Return the size of the notification for a client id of this length. The key has key_length bytes. */
static uint64_t notification_size(size_t client_length, size_t key_length) {
        struct message message;
        uint64_t size;

        cr_assert_eq(encoder_notification(&encoder, LONGEST, zeros_of(VALUE_BYTES), &message), 0);
        message.topic = zeros_of(topic_notify_length(client_length, key_length));
        size = message_packet_size(&message);
        return size;
}

/*
 * Return the size of a reply to GET without its payload, response topic and correlation data.
 * token: in the details; NULL: no details.
 */
static uint64_t reply_size(size_t topic_length, size_t correlation_length, const struct hlc *token) {
        struct reply reply = { .result.outcome = OUTCOME_VALUE,
                               .result.has_version = true,
                               .result.version = LONGEST,
                               .has_details = token,
                               .expires_in_ms = INT64_MAX / 1000000 + 1 };
        struct message message;
        uint64_t size;

        cr_assert_eq(entry_new(&reply.entry, zeros_of(1), zeros_of(VALUE_BYTES), LONGEST, token), 0);
        cr_assert_eq(encoder_reply(&encoder, &reply, &message), 0);
        message.topic = zeros_of(topic_length);
        message.correlation_data = zeros_of(correlation_length);
        message.has_expiry = true;
        size = message_packet_size(&message) - message.payload.length - topic_length - correlation_length;
        entry_unref(reply.entry);
        return size;
}

static const enum dialect dialects[] = { DIALECT_SDK, DIALECT_DOCUMENT };

Test(packet_limits, are_the_sizes_of_the_largest_packets) {
        const struct hlc token = { INT64_MAX, UINT64_MAX, SLICE_LITERAL("client-1") };

        for (size_t i = 0; i < N_ROWS(dialects); i++) {
                struct packet_limits limits;

                use(dialects[i], NODE_ID_MAX);
                limits = encoder_packet_limits(&encoder, 7);
                cr_expect_eq(limits.max_bytes, 7);
                cr_expect_eq(notification_size(ORDINARY_CLIENT_ID_MAX, 1000),
                             limits.notification_bytes + 2 * 1000 + resp3_blob_length(VALUE_BYTES));
                cr_expect_eq(reply_size(TOPIC_LENGTH_MAX, UINT16_MAX, NULL), limits.reply_bytes);
                cr_expect_eq(reply_size(TOPIC_LENGTH_MAX, UINT16_MAX, &token),
                             limits.reply_bytes + limits.details_bytes + token.node.length);
        }
}

/* A shorter packet may need 1 byte less for its Property Length, or 2 for that of a reply. */
Test(packet_limits, are_no_smaller_than_other_packets) {
        for (size_t n = 1; n <= NODE_ID_MAX; n++) {
                uint64_t size;
                struct packet_limits limits;

                use(DIALECT_SDK, n);
                limits = encoder_packet_limits(&encoder, 7);
                size = notification_size(ORDINARY_CLIENT_ID_MAX, 1) - 2 - resp3_blob_length(VALUE_BYTES);
                cr_expect(size <= limits.notification_bytes && size + 1 >= limits.notification_bytes);
                cr_expect_eq(reply_size(0, UINT16_MAX, NULL), limits.reply_bytes);
                size = reply_size(1, 16, NULL);
                cr_expect(size <= limits.reply_bytes && size + 2 >= limits.reply_bytes);
        }
}
