/* SPDX-License-Identifier: Apache-2.0 */

#include "codec/encoder.h"

#include <errno.h>

#include "base/assert.h"
#include "protocol/properties.h"
#include "protocol/resp3.h"
#include "protocol/topics.h"

/* The payload of a notification of SET, without the value. */
#define NOTIFICATION_OF_SET "*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n"

/* Payloads in the sdk dialect, NUL-terminated. */
static const struct slice outcome_payloads[N_OUTCOMES] = {
#define REPLY_PAYLOAD(symbol, name, verbs, built_from, payload) [OUTCOME_##symbol] = SLICE_LITERAL(payload),
#define ERROR_PAYLOAD(symbol, name, verbs, log, text)                                                       \
        [OUTCOME_##symbol] = SLICE_LITERAL("-ERR " text "\r\n"),
        OUTCOMES(REPLY_PAYLOAD, ERROR_PAYLOAD)
#undef REPLY_PAYLOAD
#undef ERROR_PAYLOAD
};

static const struct fault_text {
        struct slice status;
        struct slice property;
        struct slice message;
        struct slice payload;
} fault_texts[N_REQUEST_FAULTS] = {
#define FAULT_TEXT(symbol, label, status, property, message)                                                \
        [REQUEST_FAULT_##symbol] = { SLICE_LITERAL(status), SLICE_LITERAL(property),                        \
                                     SLICE_LITERAL(message), SLICE_LITERAL("-ERR " message "\r\n") },
        REQUEST_FAULTS(FAULT_TEXT)
#undef FAULT_TEXT
};

void encoder_deinit(struct encoder *encoder) {
        buf_deinit(&encoder->payload);
        buf_deinit(&encoder->fence);
}

/* Set the fields that all messages of the store have in common. */
static void message_init(struct message *message, const struct encoder *encoder, struct slice payload) {
        *message = (struct message){
                .payload = payload,
                .qos = 1,
                .user_properties = { { SLICE_LITERAL(PROPERTY_SOURCE_ID), encoder->node_id },
                                     { SLICE_LITERAL(PROPERTY_VERSION), SLICE_LITERAL(PROTOCOL_VERSION) } },
                .n_user_properties = 2,
        };
}

static void add_property(struct message *message, struct slice name, struct slice value) {
        ASSERT(message->n_user_properties < MESSAGE_USER_PROPERTIES_MAX);
        message->user_properties[message->n_user_properties++] = (struct user_property){ name, value };
}

static enum hlc_style hlc_style_of(const struct encoder *encoder) {
        return encoder->dialect == DIALECT_SDK ? HLC_PADDED : HLC_UNPADDED;
}

static void add_version(struct encoder *encoder, struct message *message, struct version version) {
        struct hlc hlc = { version.wall_ms, version.counter, encoder->node_id };
        size_t length;

        ASSERT(hlc.node.length <= NODE_ID_MAX);

        length = hlc_format_numbers(encoder->version, hlc, hlc_style_of(encoder));
        memcpy(encoder->version + length, hlc.node.data, hlc.node.length);
        length += hlc.node.length;
        encoder->version[length] = '\0';
        add_property(message, SLICE_LITERAL(PROPERTY_TIMESTAMP),
                     (struct slice){ (const uint8_t *)encoder->version, length });
}

/*
 * Return the constant payload of an outcome. Those of two outcomes depend on the dialect
 * (PROTOCOL.md "Dialects").
 */
static struct slice outcome_payload(const struct encoder *encoder, enum outcome outcome) {
        if (encoder->dialect == DIALECT_DOCUMENT && outcome == OUTCOME_CONDITION_NOT_MET)
                return SLICE_LITERAL("-1\r\n");
        if (encoder->dialect == DIALECT_DOCUMENT && outcome == OUTCOME_FENCE_TOO_OLD)
                return SLICE_LITERAL("-ERR " OUTCOME_FENCE_LOWER("that") "\r\n");
        return outcome_payloads[outcome];
}

static void append_page(struct buf *payload, const struct scan_page *page) {
        resp3_append_array(payload, page->has_next ? 2 : 1);
        resp3_append_array(payload, page->n_entries);
        for (size_t i = 0; i < page->n_entries; i++)
                resp3_append_blob(payload, entry_key(page->entries[i]));
        if (page->has_next)
                resp3_append_blob(payload,
                                  (struct slice){ (const uint8_t *)page->token, SCAN_TOKEN_LENGTH });
}

static struct slice reply_payload(struct encoder *encoder, const struct reply *reply) {
        switch (outcomes[reply->result.outcome].built_from) {
        case PAYLOAD_ENTRY:
                resp3_append_blob(&encoder->payload, entry_value(reply->entry));
                return buf_slice(&encoder->payload);
        case PAYLOAD_PAGE:
                append_page(&encoder->payload, reply->page);
                return buf_slice(&encoder->payload);
        case PAYLOAD_CONSTANT:
                break;
        }
        return outcome_payload(encoder, reply->result.outcome);
}

static void add_entry_details(struct encoder *encoder, const struct reply *reply, struct message *message) {
        struct hlc fence;
        size_t length;

        add_property(message, SLICE_LITERAL(PROPERTY_DETAILS), SLICE_LITERAL("1"));
        if (reply->expires_in_ms > 0) {
                length = format_uint64(encoder->expires_in_ms, (uint64_t)reply->expires_in_ms, 1);
                encoder->expires_in_ms[length] = '\0';
                add_property(message, SLICE_LITERAL(PROPERTY_EXPIRES_IN),
                             slice_from_string(encoder->expires_in_ms));
        }
        if (entry_fence(reply->entry, &fence)) {
                hlc_append(&encoder->fence, fence, hlc_style_of(encoder));
                add_property(message, SLICE_LITERAL(PROPERTY_FENCE),
                             slice_from_string(buf_text(&encoder->fence)));
        }
}

int encoder_reply(struct encoder *encoder, const struct reply *reply, struct message *ret_message) {
        buf_reset(&encoder->payload);
        buf_reset(&encoder->fence);
        encoder_reply_payload(encoder, reply_payload(encoder, reply), ret_message);
        if (reply->result.has_version)
                add_version(encoder, ret_message, reply->result.version);
        if (reply->has_details)
                add_entry_details(encoder, reply, ret_message);
        return buf_failed(&encoder->payload) || buf_failed(&encoder->fence) ? -ENOMEM : 0;
}

void encoder_reply_payload(const struct encoder *encoder, struct slice payload,
                           struct message *ret_message) {
        message_init(ret_message, encoder, payload);
        add_property(ret_message, SLICE_LITERAL(PROPERTY_STATUS), SLICE_LITERAL(STATUS_OK));
}

int encoder_fault(struct encoder *encoder, enum request_fault fault, struct slice value,
                  struct message *ret_message) {
        const struct fault_text *text = &fault_texts[fault];

        /* Copy the value to add a NUL: it is a slice of the request. */
        buf_reset(&encoder->payload);
        buf_append_slice(&encoder->payload, value);
        if (!buf_text(&encoder->payload))
                return -ENOMEM;
        value = buf_slice(&encoder->payload);

        message_init(ret_message, encoder, text->payload);
        add_property(ret_message, SLICE_LITERAL(PROPERTY_STATUS), text->status);
        add_property(ret_message, SLICE_LITERAL(PROPERTY_STATUS_TEXT), text->message);
        add_property(ret_message, SLICE_LITERAL(PROPERTY_FAULT_NAME), text->property);
        add_property(ret_message, SLICE_LITERAL(PROPERTY_FAULT_VALUE), value);
        if (fault == REQUEST_FAULT_VERSION) {
                add_property(ret_message, SLICE_LITERAL(PROPERTY_SUPPORTED_VERSIONS), SLICE_LITERAL("0 1"));
                add_property(ret_message, SLICE_LITERAL(PROPERTY_REQUEST_VERSION), value);
        }
        return 0;
}

int encoder_notification(struct encoder *encoder, struct version version, struct slice value,
                         struct message *ret_message) {
        struct slice payload = encoder->dialect == DIALECT_SDK
                                       ? SLICE_LITERAL("*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n")
                                       : SLICE_LITERAL("*2\r\n$6\r\nNOTIFY\r\n$3\r\nDEL\r\n");

        buf_reset(&encoder->payload);
        if (value.data) {
                buf_append_string(&encoder->payload, NOTIFICATION_OF_SET);
                resp3_append_blob(&encoder->payload, value);
                payload = buf_slice(&encoder->payload);
        }
        message_init(ret_message, encoder, payload);
        add_version(encoder, ret_message, version);
        return buf_failed(&encoder->payload) ? -ENOMEM : 0;
}

/* Sizes of MQTT 5, 3.3: texts have their length in 2 bytes, properties an identifier in 1 byte. */
#define TEXT_BYTES(text)                 (2 + sizeof(text) - 1)
#define TEXT_PROPERTY_BYTES(text)        (1 + TEXT_BYTES(text))
#define USER_PROPERTY_BYTES(name, value) (1 + TEXT_BYTES(name) + TEXT_BYTES(value))

/*
 * The size of a message of the store with the longest version, without topic, payload, node ids and
 * Property Length.
 */
#define PACKET_BYTES                                                                                        \
        (1 + MESSAGE_VARINT_MAX /* Remaining Length */ + TEXT_BYTES("") /* topic */ +                       \
         2 /* packet identifier */ + 2 /* Payload Format Indicator */ +                                     \
         TEXT_PROPERTY_BYTES(MESSAGE_CONTENT_TYPE) + USER_PROPERTY_BYTES(PROPERTY_SOURCE_ID, "") +          \
         USER_PROPERTY_BYTES(PROPERTY_VERSION, PROTOCOL_VERSION) +                                          \
         USER_PROPERTY_BYTES(PROPERTY_TIMESTAMP, "9223372036854775807:2147483647:"))

struct packet_limits encoder_packet_limits(const struct encoder *encoder, uint64_t max_bytes) {
        size_t n_bytes = PACKET_BYTES + 2 * encoder->node_id.length;

        return (struct packet_limits){
                .max_bytes = max_bytes,
                .notification_bytes = n_bytes + 2 /* Property Length */ + strlen(NOTIFICATION_OF_SET) +
                                      topic_notify_length(ORDINARY_CLIENT_ID_MAX, 0),
                .reply_bytes = n_bytes + 3 /* Property Length */ + 5 /* Message Expiry Interval */ +
                               TEXT_PROPERTY_BYTES("") /* Correlation Data */ +
                               USER_PROPERTY_BYTES(PROPERTY_STATUS, STATUS_OK),
                .details_bytes =
                        USER_PROPERTY_BYTES(PROPERTY_DETAILS, "1") +
                        USER_PROPERTY_BYTES(PROPERTY_EXPIRES_IN, "9223372036855") +
                        USER_PROPERTY_BYTES(PROPERTY_FENCE, "9223372036854775807:18446744073709551615:"),
        };
}

struct slice encoder_error_text(enum outcome outcome) {
        struct slice text = outcome_payloads[outcome];

        ASSERT(outcome_is_error(outcome) && outcome < N_OUTCOMES);
        return (struct slice){ text.data + strlen("-ERR "), text.length - strlen("-ERR \r\n") };
}
