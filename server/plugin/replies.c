/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publish replies by their topic, not to a client id: so subscribers, bridges and READ rules decide
 * who gets them.
 */

#include "plugin/replies.h"

#include <errno.h>

#include "base/cleanup.h"
#include "plugin/internal.h"
#include "plugin/publish.h"
#include "plugin/record.h"
#include "protocol/companion.h"
#include "protocol/frame.h"
#include "protocol/properties.h"
#include "protocol/topics.h"

bool reply_has_prefix(const struct plugin *plugin, struct slice topic) {
        struct slice prefix = slice_from_string(plugin->reply_prefix);

        return slice_starts_with(topic, SLICE_LITERAL(TOPIC_REPLY_PREFIX)) ||
               (prefix.data && slice_starts_with(topic, prefix));
}

bool reply_is_allowed(const struct plugin_load *load, struct slice topic) {
        return (load->undecided == UNDECIDED_ALLOW && !load->is_write_decided) ||
               reply_has_prefix(load->plugin, topic);
}

int reply_publish(const struct record *record, const struct frame_reply *reply) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        const struct frame_request *request = &record->request;

        if (!request->response_topic.data)
                return -EINVAL;
        buf_append_slice(&topic, request->response_topic);
        return publish_to_clients(NULL, &topic,
                                  &(struct publication){ .correlation_data = request->correlation_data,
                                                         .user_properties = reply->properties,
                                                         .payload = reply->payload });
}

void reply_publish_error(const struct record *record, const char *text) {
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
        (void)reply_publish(record, &reply);
}
