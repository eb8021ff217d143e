/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/conversion.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"

/*
 * libmosquitto returns NULL for empty data, and from 2.1 on also for an empty text. But NULL means absent
 * in struct message.
 */
static struct slice incoming_own(struct mqtt_incoming *incoming, struct slice value) {
        ASSERT(incoming->n_owned < ARRAY_LENGTH(incoming->owned));
        incoming->owned[incoming->n_owned++] = (void *)value.data;
        return value.data ? value : SLICE_LITERAL("");
}

static bool is_wanted(const struct message *message, struct slice name, const struct slice *wanted) {
        for (size_t i = 0; i < message->n_user_properties; i++)
                if (slice_equal(message->user_properties[i].name, name))
                        return false; /* use the first of several with this name */

        for (; wanted->data; wanted++)
                if (slice_equal(*wanted, name))
                        return true;
        return false;
}

static int incoming_read_user_property(struct mqtt_incoming *incoming, const mosquitto_property *property,
                                       const struct slice *wanted) {
        struct message *message = &incoming->message;
        char *name_text = NULL, *value = NULL;
        struct slice name;

        if (!mosquitto_property_read_string_pair(property, MQTT_PROP_USER_PROPERTY, &name_text, &value,
                                                 false))
                return -ENOMEM;

        name = slice_from_string(name_text);
        if (message->n_user_properties == MESSAGE_USER_PROPERTIES_MAX || !is_wanted(message, name, wanted)) {
                free(name_text);
                free(value);
                return 0;
        }

        message->user_properties[message->n_user_properties++] = (struct user_property){
                .name = incoming_own(incoming, name),
                .value = incoming_own(incoming, slice_from_string(value)),
        };
        return 0;
}

static int incoming_read_property(struct mqtt_incoming *incoming, const mosquitto_property *property,
                                  const struct slice *wanted) {
        struct message *message = &incoming->message;
        int identifier = mosquitto_property_identifier(property);
        uint16_t length;
        void *data;
        char *text;

        switch (identifier) {
        case MQTT_PROP_RESPONSE_TOPIC:
                if (!mosquitto_property_read_string(property, identifier, &text, false))
                        return -ENOMEM;
                message->response_topic = incoming_own(incoming, slice_from_string(text));
                return 0;
        case MQTT_PROP_CORRELATION_DATA:
                data = NULL;
                if (!mosquitto_property_read_binary(property, identifier, &data, &length, false))
                        return -ENOMEM;
                message->correlation_data = incoming_own(incoming, (struct slice){ data, length });
                return 0;
        case MQTT_PROP_MESSAGE_EXPIRY_INTERVAL:
                mosquitto_property_read_int32(property, identifier, &message->expiry_s, false);
                message->has_expiry = true;
                return 0;
        case MQTT_PROP_USER_PROPERTY:
                return incoming_read_user_property(incoming, property, wanted);
        default:
                return 0;
        }
}

int mqtt_incoming_init(struct mqtt_incoming *incoming, const struct mosquitto_message *message,
                       const mosquitto_property *properties, const struct slice *wanted) {
        int r;

        incoming->n_owned = 0;
        incoming->message = (struct message){
                .topic = slice_from_string(message->topic),
                .payload = { message->payload, (size_t)message->payloadlen },
                .qos = (uint8_t)message->qos,
        };

        for (; properties; properties = mosquitto_property_next(properties)) {
                r = incoming_read_property(incoming, properties, wanted);
                if (r < 0)
                        return r;
        }
        return 0;
}

void mqtt_incoming_deinit(struct mqtt_incoming *incoming) {
        while (incoming->n_owned > 0)
                free(incoming->owned[--incoming->n_owned]);
}

int mqtt_properties_new(mosquitto_property **ret_properties, const struct message *message) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        r = mosquitto_property_add_byte(&properties, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_property_add_string(&properties, MQTT_PROP_CONTENT_TYPE, MESSAGE_CONTENT_TYPE);
        if (r == MOSQ_ERR_SUCCESS && message->correlation_data.data)
                r = mosquitto_property_add_binary(&properties, MQTT_PROP_CORRELATION_DATA,
                                                  message->correlation_data.data,
                                                  (uint16_t)message->correlation_data.length);
        if (r == MOSQ_ERR_SUCCESS && message->response_topic.data)
                r = mosquitto_property_add_string(&properties, MQTT_PROP_RESPONSE_TOPIC,
                                                  (const char *)message->response_topic.data);
        if (r == MOSQ_ERR_SUCCESS && message->has_expiry)
                r = mosquitto_property_add_int32(&properties, MQTT_PROP_MESSAGE_EXPIRY_INTERVAL,
                                                 message->expiry_s);
        for (size_t i = 0; r == MOSQ_ERR_SUCCESS && i < message->n_user_properties; i++)
                r = mosquitto_property_add_string_pair(&properties, MQTT_PROP_USER_PROPERTY,
                                                       (const char *)message->user_properties[i].name.data,
                                                       (const char *)message->user_properties[i].value.data);
        if (r != MOSQ_ERR_SUCCESS)
                return mqtt_error(r);

        *ret_properties = take_ptr(&properties);
        return 0;
}

int mqtt_error(int result) {
        switch (result) {
        case MOSQ_ERR_SUCCESS:
                return 0;
        case MOSQ_ERR_NOMEM:
                return -ENOMEM;
        case MOSQ_ERR_OVERSIZE_PACKET:
        case MOSQ_ERR_PAYLOAD_SIZE:
                return -EMSGSIZE;
        case MOSQ_ERR_NO_CONN:
        case MOSQ_ERR_CONN_LOST:
                return -ENOTCONN;
        case MOSQ_ERR_ERRNO:
                return -EIO;
        default:
                return -EINVAL;
        }
}
