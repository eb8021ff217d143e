/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publish replies by their topic, not to a client id: so subscribers, bridges and READ rules decide
 * who gets them, as for a reply that the store publishes.
 */

#include <errno.h>
#include <limits.h>

#include "base/cleanup.h"
#include "plugin/internal.h"
#include "protocol/properties.h"

#define REPLY_PREFIX "clients/"

bool reply_is_allowed(const struct plugin *plugin, struct slice topic) {
        if (!topic.data)
                return false;
        return slice_starts_with(topic, SLICE_LITERAL(REPLY_PREFIX)) ||
               (plugin->reply_prefix && slice_starts_with(topic, slice_from_string(plugin->reply_prefix)));
}

int reply_publish(const struct plugin *plugin, const struct record *record,
                  const struct frame_reply *reply) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        struct frame_request request = record_request(record);
        int r;

        if (!reply_is_allowed(plugin, request.response_topic) || reply->payload.length > INT_MAX)
                return -EINVAL;
        buf_append_slice(&topic, request.response_topic);
        if (!buf_text(&topic))
                return -ENOMEM;
        r = properties_add(&properties, request.correlation_data, reply->properties);
        if (r < 0)
                return r;

        r = broker_errno(mosquitto_broker_publish_copy(NULL, buf_text(&topic), (int)reply->payload.length,
                                                       reply->payload.data, 1, false, properties));
        if (r == 0)
                properties = NULL; /* owned by the broker */
        return r;
}

void reply_publish_error(const struct plugin *plugin, const struct record *record, const char *text) {
        CLEANUP(buf_deinit) struct buf properties = { 0 }, payload = { 0 };
        struct frame_reply reply;

        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_STATUS), SLICE_LITERAL("200"));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_VERSION), SLICE_LITERAL("1.0"));
        frame_property_append(&properties, SLICE_LITERAL(PROPERTY_SOURCE_ID),
                              SLICE_LITERAL(COMPANION_SOURCE_ID));
        buf_append_format(&payload, "-ERR %s\r\n", text);
        if (buf_failed(&properties) || buf_failed(&payload))
                return;

        reply = (struct frame_reply){ .properties = buf_slice(&properties), .payload = buf_slice(&payload) };
        (void)reply_publish(plugin, record, &reply);
}
