/* SPDX-License-Identifier: Apache-2.0 */

#include "plugin/publish.h"

#include <errno.h>

#include "base/cleanup.h"
#include "plugin/broker.h"
#include "plugin/internal.h"
#include "protocol/frame.h"
#include "protocol/message.h"

/*
 * Estimated time of the broker for each reply and each notification: to copy it, to write it, and to
 * read its PUBACK; and for each byte of its topic and payload.
 */
#define PUBLISH_NS      10000
#define PUBLISH_BYTE_NS 1

/* mosquitto takes NUL-terminated texts, and copies them. Returns MOSQ_ERR_..., as add_properties(). */
static int add_user_property(mosquitto_property **list, struct buf *text,
                             const struct user_property *property) {
        size_t value_offset = property->name.length + 1;

        buf_reset(text);
        buf_append_slice(text, property->name);
        buf_append(text, "", 1);
        buf_append_slice(text, property->value);
        buf_append(text, "", 1);
        if (buf_failed(text))
                return MOSQ_ERR_NOMEM;
        return mosquitto_property_add_string_pair(list, MQTT_PROP_USER_PROPERTY, (const char *)text->data,
                                                  (const char *)text->data + value_offset);
}

static int add_properties(mosquitto_property **list, const struct publication *publication) {
        CLEANUP(buf_deinit) struct buf text = { 0 };
        struct slice correlation = publication->correlation_data, rest = publication->user_properties;
        struct user_property property;
        int result;

        result = mosquitto_property_add_byte(list, MQTT_PROP_PAYLOAD_FORMAT_INDICATOR, 0);
        if (result == MOSQ_ERR_SUCCESS)
                result = mosquitto_property_add_string(list, MQTT_PROP_CONTENT_TYPE, MESSAGE_CONTENT_TYPE);
        if (result == MOSQ_ERR_SUCCESS && correlation.data)
                result = mosquitto_property_add_binary(list, MQTT_PROP_CORRELATION_DATA, correlation.data,
                                                       (uint16_t)correlation.length);
        while (result == MOSQ_ERR_SUCCESS && frame_property_next(&rest, &property))
                result = add_user_property(list, &text, &property);
        return result;
}

static void cleanup_properties(mosquitto_property **list) {
        mosquitto_property_free_all(list);
}

int publish_to_clients(const char *client_id, struct buf *topic, const struct publication *publication) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        int result;

        if (!buf_text(topic))
                return -ENOMEM;
        result = add_properties(&properties, publication);
        if (result == MOSQ_ERR_SUCCESS)
                result = mosquitto_broker_publish_copy(client_id, buf_text(topic),
                                                       (int)publication->payload.length,
                                                       publication->payload.data, 1, false, properties);
        if (result == MOSQ_ERR_SUCCESS)
                properties = NULL; /* owned by the broker */
        return broker_errno(result);
}

void publish_count(struct plugin *plugin, size_t n_bytes) {
        plugin->to_store.publish_ns += PUBLISH_NS + PUBLISH_BYTE_NS * n_bytes;
}
