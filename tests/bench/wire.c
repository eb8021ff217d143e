/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/wire.h"

#include "bench/fail.h"

#define CONNECT   0x10
#define PUBLISH   0x30
#define PUBACK    0x40
#define PUBREL    0x62
#define SUBSCRIBE 0x82

#define FORMAT_INDICATOR 0x01
#define MESSAGE_EXPIRY   0x02
#define CONTENT_TYPE     0x03
#define RESPONSE_TOPIC   0x08
#define CORRELATION_DATA 0x09
#define USER_PROPERTY    0x26

#define KEEPALIVE_NONE 0
#define CLEAN_START    2

static void append_uint8(struct buf *out, uint8_t value) {
        buf_append(out, &value, 1);
}

static void append_uint16(struct buf *out, size_t value) {
        buf_append(out, (uint8_t[]){ (uint8_t)(value >> 8), (uint8_t)value }, 2);
}

static void append_uint32(struct buf *out, uint32_t value) {
        append_uint16(out, value >> 16);
        append_uint16(out, value);
}

/* A variable byte integer. */
static void append_length(struct buf *out, size_t value) {
        for (; value >= 0x80; value >>= 7)
                append_uint8(out, (uint8_t)(value | 0x80));
        append_uint8(out, (uint8_t)value);
}

static size_t size_of_length(size_t value) {
        return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : 4;
}

static void append_text(struct buf *out, struct slice text) {
        append_uint16(out, text.length);
        buf_append_slice(out, text);
}

static struct slice take(struct slice *rest, size_t n) {
        struct slice taken = { rest->data, n };

        if (n > rest->length)
                fail("a packet of the broker is truncated");
        *rest = (struct slice){ rest->data + n, rest->length - n };
        return taken;
}

static uint16_t take_uint16(struct slice *rest) {
        struct slice taken = take(rest, 2);

        return (uint16_t)(taken.data[0] << 8 | taken.data[1]);
}

static struct slice take_text(struct slice *rest) {
        return take(rest, take_uint16(rest));
}

/* Return false if it is incomplete. */
static bool take_length(struct slice *rest, size_t *ret_value) {
        size_t value = 0;

        for (unsigned shift = 0; shift < 28 && rest->length > 0; shift += 7) {
                uint8_t byte = *take(rest, 1).data;

                value |= (size_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret_value = value;
                        return true;
                }
        }
        return false;
}

bool wire_take(struct slice *rest, struct wire_packet *ret_packet) {
        struct slice left = *rest;
        uint8_t header;
        size_t length;

        if (left.length == 0)
                return false;

        header = *take(&left, 1).data;
        if (!take_length(&left, &length) || left.length < length)
                return false;

        *ret_packet = (struct wire_packet){ header >> 4, header & 0xf, take(&left, length) };
        *rest = left;
        return true;
}

uint8_t wire_reason(const struct wire_packet *packet) {
        switch (packet->type) {
        case WIRE_CONNACK:
                return packet->body.data[1];
        case WIRE_PUBACK: /* absent if it is 0 */
                return packet->body.length > 2 ? packet->body.data[2] : 0;
        default:
                return packet->body.data[packet->body.length - 1];
        }
}

uint16_t wire_id(const struct wire_packet *packet) {
        struct slice rest = packet->body;

        return take_uint16(&rest);
}

static void read_property(struct slice *rest, struct message *message) {
        switch (*take(rest, 1).data) {
        case FORMAT_INDICATOR:
                take(rest, 1);
                break;
        case MESSAGE_EXPIRY:
                take(rest, 4);
                break;
        case CONTENT_TYPE:
                take_text(rest);
                break;
        case RESPONSE_TOPIC:
                message->response_topic = take_text(rest);
                break;
        case CORRELATION_DATA:
                message->correlation_data = take_text(rest);
                break;
        case USER_PROPERTY:
                take_text(rest);
                take_text(rest);
                break;
        default:
                fail("a message has an unexpected property");
        }
}

void wire_read_publish(const struct wire_packet *packet, struct message *ret_message, uint16_t *ret_id) {
        struct slice rest = packet->body, properties;
        size_t properties_length = 0;

        *ret_message = (struct message){ .topic = take_text(&rest), .qos = packet->flags >> 1 & 3 };
        if (ret_message->qos != 1)
                fail("a message has QoS %d", ret_message->qos);
        *ret_id = take_uint16(&rest);

        take_length(&rest, &properties_length);
        properties = take(&rest, properties_length);
        while (properties.length > 0)
                read_property(&properties, ret_message);
        ret_message->payload = rest;
}

void wire_append_connect(struct buf *out, const char *client_id) {
        struct slice id = slice_from_string(client_id), name = SLICE_LITERAL("MQTT");

        append_uint8(out, CONNECT);
        append_length(out, 2 + name.length + 1 + 1 + 2 + 1 + 2 + id.length);
        append_text(out, name);
        append_uint8(out, 5);
        append_uint8(out, CLEAN_START);
        append_uint16(out, KEEPALIVE_NONE);
        append_length(out, 0);
        append_text(out, id);
}

void wire_append_subscribe(struct buf *out, const char *filter) {
        struct slice text = slice_from_string(filter);

        append_uint8(out, SUBSCRIBE);
        append_length(out, 2 + 1 + 2 + text.length + 1);
        append_uint16(out, 1);
        append_length(out, 0);
        append_text(out, text);
        append_uint8(out, 1);
}

void wire_append_puback(struct buf *out, uint16_t id) {
        append_uint8(out, PUBACK);
        append_length(out, 2);
        append_uint16(out, id);
}

void wire_append_pubrel(struct buf *out, uint16_t id) {
        append_uint8(out, PUBREL);
        append_length(out, 2);
        append_uint16(out, id);
}

void wire_append_user_property(struct buf *out, struct slice name, struct slice value) {
        append_uint8(out, USER_PROPERTY);
        append_text(out, name);
        append_text(out, value);
}

static size_t size_of_properties(const struct message *message, struct slice content_type) {
        size_t size = 2 + 3 + content_type.length;

        if (message->response_topic.data)
                size += 3 + message->response_topic.length;
        if (message->correlation_data.data)
                size += 3 + message->correlation_data.length;
        if (message->has_expiry)
                size += 5;
        for (size_t i = 0; i < message->n_user_properties; i++)
                size += 5 + message->user_properties[i].name.length +
                        message->user_properties[i].value.length;
        return size;
}

static void append_properties(struct buf *out, const struct message *message, struct slice content_type) {
        append_uint8(out, FORMAT_INDICATOR);
        append_uint8(out, 0);
        append_uint8(out, CONTENT_TYPE);
        append_text(out, content_type);
        if (message->response_topic.data) {
                append_uint8(out, RESPONSE_TOPIC);
                append_text(out, message->response_topic);
        }
        if (message->correlation_data.data) {
                append_uint8(out, CORRELATION_DATA);
                append_text(out, message->correlation_data);
        }
        if (message->has_expiry) {
                append_uint8(out, MESSAGE_EXPIRY);
                append_uint32(out, message->expiry_s);
        }
        for (size_t i = 0; i < message->n_user_properties; i++)
                wire_append_user_property(out, message->user_properties[i].name,
                                          message->user_properties[i].value);
}

void wire_append_publish(struct buf *out, const struct message *message, uint8_t qos, uint16_t id,
                         struct slice properties) {
        struct slice content_type = SLICE_LITERAL("application/octet-stream");
        size_t properties_size = size_of_properties(message, content_type) + properties.length;

        append_uint8(out, (uint8_t)(PUBLISH | qos << 1));
        append_length(out, 2 + message->topic.length + (qos > 0 ? 2 : 0) + size_of_length(properties_size) +
                                   properties_size + message->payload.length);
        append_text(out, message->topic);
        if (qos > 0)
                append_uint16(out, id);
        append_length(out, properties_size);
        append_properties(out, message, content_type);
        buf_append_slice(out, properties);
        buf_append_slice(out, message->payload);
}
