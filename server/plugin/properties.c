/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mosquitto_property_read_*() searches the list from the given element on, and returns the element
 * that it has read. All callers pass an element of the wanted kind, so the returned element is NULL
 * only if memory is short.
 */

#include <errno.h>
#include <malloc.h>

#include "base/cleanup.h"
#include "plugin/internal.h"

void property_value_free(void *value) {
        if (broker_is_2_1())
                mosquitto_free(value);
        else
                free(value);
}

void cleanup_property_value(void *pointer_to_value) {
        property_value_free(*(void **)pointer_to_value);
}

int property_read_text(const mosquitto_property *property, char **ret_text) {
        int kind = mosquitto_property_identifier(property);

        return mosquitto_property_read_string(property, kind, ret_text, false) ? 0 : -ENOMEM;
}

int property_read_name(const mosquitto_property *property, char **ret_name) {
        int kind = mosquitto_property_identifier(property);

        return mosquitto_property_read_string_pair(property, kind, ret_name, NULL, false) ? 0 : -ENOMEM;
}

int properties_read_correlation(const mosquitto_property *properties, uint64_t *ret_first,
                                uint64_t *ret_second) {
        CLEANUP(cleanup_property_value) void *data = NULL;
        uint16_t length;

        while (properties && mosquitto_property_identifier(properties) != MQTT_PROP_CORRELATION_DATA)
                properties = mosquitto_property_next(properties);
        if (!properties)
                return -EINVAL;

        if (!mosquitto_property_read_binary(properties, MQTT_PROP_CORRELATION_DATA, &data, &length, false))
                return -ENOMEM;
        return companion_number_pair_read((struct slice){ data, length }, ret_first, ret_second);
}

static int copy_text(mosquitto_property **list, const mosquitto_property *property, int kind) {
        CLEANUP(cleanup_property_value) char *text = NULL;
        int r;

        r = property_read_text(property, &text);
        return r < 0 ? r : broker_errno(mosquitto_property_add_string(list, kind, text));
}

static int copy_user_property(mosquitto_property **list, const mosquitto_property *property, int kind) {
        CLEANUP(cleanup_property_value) char *name = NULL, *value = NULL;

        if (!mosquitto_property_read_string_pair(property, kind, &name, &value, false))
                return -ENOMEM;
        return broker_errno(mosquitto_property_add_string_pair(list, kind, name, value));
}

static int copy_binary(mosquitto_property **list, const mosquitto_property *property, int kind) {
        CLEANUP(cleanup_property_value) void *data = NULL;
        uint16_t length;

        if (!mosquitto_property_read_binary(property, kind, &data, &length, false))
                return -ENOMEM;
        return broker_errno(mosquitto_property_add_binary(list, kind, data, length));
}

static int copy_byte(mosquitto_property **list, const mosquitto_property *property, int kind) {
        uint8_t value;

        if (!mosquitto_property_read_byte(property, kind, &value, false))
                return -ENOMEM;
        return broker_errno(mosquitto_property_add_byte(list, kind, value));
}

static int copy_int32(mosquitto_property **list, const mosquitto_property *property, int kind) {
        uint32_t value;

        if (!mosquitto_property_read_int32(property, kind, &value, false))
                return -ENOMEM;
        return broker_errno(mosquitto_property_add_int32(list, kind, value));
}

/* Append a copy of the property. Omits kinds that the broker does not forward. */
static int copy(mosquitto_property **list, const mosquitto_property *property) {
        int kind = mosquitto_property_identifier(property);

        switch (kind) {
        case MQTT_PROP_USER_PROPERTY:
                return copy_user_property(list, property, kind);
        case MQTT_PROP_RESPONSE_TOPIC:
        case MQTT_PROP_CONTENT_TYPE:
                return copy_text(list, property, kind);
        case MQTT_PROP_CORRELATION_DATA:
                return copy_binary(list, property, kind);
        case MQTT_PROP_PAYLOAD_FORMAT_INDICATOR:
                return copy_byte(list, property, kind);
        case MQTT_PROP_MESSAGE_EXPIRY_INTERVAL:
                return copy_int32(list, property, kind);
        default:
                return 0;
        }
}

int properties_copy(mosquitto_property **list, const mosquitto_property *from,
                    int (*keep)(const mosquitto_property *property)) {
        size_t n_copied = 0;
        int r;

        for (const mosquitto_property *property = from; property;
             property = mosquitto_property_next(property)) {
                r = keep ? keep(property) : 1;
                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                if (++n_copied > PROPERTIES_COPIED_MAX)
                        return -E2BIG;

                r = copy(list, property);
                if (r < 0)
                        return r;
        }
        return 0;
}

void properties_swap(mosquitto_property *a, mosquitto_property *b) {
        uint8_t *a_bytes = (uint8_t *)a, *b_bytes = (uint8_t *)b;
        size_t a_size = malloc_usable_size(a), b_size = malloc_usable_size(b);

        for (size_t i = 0; i < a_size && i < b_size; i++) {
                uint8_t byte = a_bytes[i];

                a_bytes[i] = b_bytes[i];
                b_bytes[i] = byte;
        }
}

void cleanup_properties(mosquitto_property **list) {
        mosquitto_property_free_all(list);
}
