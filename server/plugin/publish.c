/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replies are published by their topic, not to a client id: so subscribers, bridges and READ rules
 * decide who gets them. The plugin interface has no publish to several clients: each recipient of a
 * notification needs its own list of properties and payload.
 */

#include "plugin/publish.h"

#include <errno.h>

#include "base/cleanup.h"
#include "plugin/broker.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/record.h"
#include "protocol/companion.h"
#include "protocol/frame.h"
#include "protocol/message.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

/*
 * Estimated time of the broker for each reply and each notification: to copy it, to write it, and to
 * read its PUBACK; and for each byte of its topic and payload.
 */
#define PUBLISH_NS      10000
#define PUBLISH_BYTE_NS 1

/* notification_position.n_recipients after the last record of a change. */
#define ALL_RECIPIENTS UINT64_MAX

/* What a reply and a notification have in common. */
struct publication {
        struct slice correlation_data; /* data NULL: absent */
        struct slice user_properties;  /* frame_property_next() */
        struct slice payload;
};

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

/*
 * Publish at QoS 1, with Payload Format Indicator and Content Type: to this client only, or to all
 * subscribers if client_id is NULL. Returns 0, -ENOMEM, or -EINVAL if the broker refuses it.
 */
static int publish_to_clients(struct plugin *plugin, const char *client_id, const char *topic,
                              const struct publication *publication) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        int result;

        plugin->publish_ns += PUBLISH_NS + PUBLISH_BYTE_NS * (strlen(topic) + publication->payload.length);
        result = add_properties(&properties, publication);
        if (result == MOSQ_ERR_SUCCESS)
                result = mosquitto_broker_publish_copy(client_id, topic, (int)publication->payload.length,
                                                       publication->payload.data, 1, false, properties);
        if (result == MOSQ_ERR_SUCCESS)
                properties = NULL; /* owned by the broker */
        return broker_errno(result);
}

/* 1. Replies */

int publish_reply(struct plugin *plugin, const struct record *record, const struct frame_reply *reply) {
        const struct frame_request *request = &record->request;

        if (!request->response_topic.data)
                return -EINVAL;
        return publish_to_clients(plugin, NULL, (const char *)request->response_topic.data,
                                  &(struct publication){ .correlation_data = request->correlation_data,
                                                         .user_properties = reply->properties,
                                                         .payload = reply->payload });
}

void publish_error(struct plugin *plugin, const struct record *record, const char *text) {
        CLEANUP(buf_deinit) struct buf properties = { 0 }, payload = { 0 };
        struct frame_reply reply;

        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_STATUS), SLICE_LITERAL(STATUS_OK));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_VERSION), SLICE_LITERAL(PROTOCOL_VERSION));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_SOURCE_ID),
                              SLICE_LITERAL(COMPANION_SOURCE_ID));
        buf_append_format(&payload, "-ERR %s\r\n", text);
        if (buf_failed(&properties) || buf_failed(&payload))
                return;

        reply = (struct frame_reply){ .properties = buf_slice(&properties), .payload = buf_slice(&payload) };
        (void)publish_reply(plugin, record, &reply);
}

/* 2. Notifications */

static int publish_to_recipient(struct plugin *plugin, const struct frame_notification *notification,
                                const char *client_id) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };

        topic_append_notify(&topic, slice_from_string(client_id), notification->key);
        if (!buf_text(&topic))
                return -ENOMEM;
        if (topic.length > TOPIC_LENGTH_MAX)
                return -EINVAL;
        return publish_to_clients(plugin, client_id, buf_text(&topic),
                                  &(struct publication){ .user_properties = notification->properties,
                                                         .payload = notification->payload });
}

int publish_notification(struct plugin *plugin, const struct frame_notification *notification) {
        struct notification_position *position = &plugin->position;

        if (notification->sequence < position->sequence)
                return 0;
        if (notification->sequence > position->sequence)
                *position = (struct notification_position){ .sequence = notification->sequence };
        for (size_t i = 0; i < frame_n_recipients(notification); i++) {
                uint64_t n_before = (uint64_t)notification->index + i;
                const struct connection *connection =
                        connections_find(&plugin->connections, frame_recipient(notification, i));

                if (n_before < position->n_recipients)
                        continue;
                if (connection &&
                    publish_to_recipient(plugin, notification, connection->client_id) == -ENOMEM)
                        return -ENOMEM;
                position->n_recipients = n_before + 1;
        }
        if (notification->is_last)
                position->n_recipients = ALL_RECIPIENTS;
        return 0;
}

/* While a change is not complete, the one before it may have any lower sequence. */
uint64_t publish_last_complete(const struct plugin *plugin) {
        const struct notification_position *position = &plugin->position;

        if (position->n_recipients == ALL_RECIPIENTS || position->sequence == 0)
                return position->sequence;
        return position->sequence - 1;
}
