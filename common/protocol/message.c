/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/message.h"

#include <stdlib.h>

#include "base/time_units.h"

struct slice message_property(const struct message *message, const char *name) {
        size_t length = strlen(name);

        for (size_t i = 0; i < message->n_user_properties; i++) {
                const struct user_property *property = &message->user_properties[i];

                if (property->name.length == length && memcmp(property->name.data, name, length) == 0)
                        return property->value;
        }
        return (struct slice){ 0 };
}

uint32_t message_expiry_rest_s(bool has_expiry, uint32_t expiry_s, int64_t waited_ns) {
        int64_t waited_s = waited_ns > 0 ? waited_ns / NS_PER_S : 0;

        if (!has_expiry)
                return UINT32_MAX;
        return waited_s < expiry_s ? expiry_s - (uint32_t)waited_s : 0;
}

size_t message_size(const struct message *message) {
        size_t size = sizeof(*message) + message->topic.length + message->payload.length +
                      message->response_topic.length + message->correlation_data.length;

        for (size_t i = 0; i < message->n_user_properties; i++)
                size += message->user_properties[i].name.length + message->user_properties[i].value.length;
        return size;
}

static size_t varint_size(uint64_t value) {
        size_t size = 1;

        for (; value > 127; value >>= 7)
                size++;
        return size;
}

/* Size of a property with one text: identifier, two bytes of length, and the text. 0 if absent. */
static size_t text_property_size(struct slice text) {
        return text.data ? 1 + 2 + text.length : 0;
}

uint64_t message_packet_size(const struct message *message) {
        uint64_t properties, size;

        properties = 2 /* Payload Format Indicator */ +
                     text_property_size(SLICE_LITERAL(MESSAGE_CONTENT_TYPE)) +
                     text_property_size(message->response_topic) +
                     text_property_size(message->correlation_data) + (message->has_expiry ? 1 + 4 : 0);
        for (size_t i = 0; i < message->n_user_properties; i++)
                properties += 1 + 2 + message->user_properties[i].name.length + 2 +
                              message->user_properties[i].value.length;

        size = 2 + message->topic.length + 2 /* packet identifier */ + varint_size(properties) + properties +
               message->payload.length;
        return 1 + varint_size(size) + size;
}

struct message *message_copy(const struct message *message) {
        size_t n_texts = 4 + 2 * message->n_user_properties;
        struct message *copy = malloc(message_size(message) + n_texts);
        uint8_t *at;

        if (!copy)
                return NULL;

        at = (uint8_t *)(copy + 1);
        *copy = *message;
        copy->topic = slice_copy(&at, message->topic);
        copy->payload = slice_copy(&at, message->payload);
        copy->response_topic = slice_copy(&at, message->response_topic);
        copy->correlation_data = slice_copy(&at, message->correlation_data);
        for (size_t i = 0; i < message->n_user_properties; i++) {
                copy->user_properties[i].name = slice_copy(&at, message->user_properties[i].name);
                copy->user_properties[i].value = slice_copy(&at, message->user_properties[i].value);
        }
        return copy;
}
