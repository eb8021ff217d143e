/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plugin interface has no publish to several clients: each recipient needs its own list of
 * properties and payload.
 */

#include "plugin/notifications.h"

#include <errno.h>

#include "base/cleanup.h"
#include "plugin/connections.h"
#include "plugin/internal.h"
#include "plugin/publish.h"
#include "protocol/frame.h"
#include "protocol/topics.h"

/* notification_position.n_recipients after the last record of a change. */
#define ALL_RECIPIENTS UINT64_MAX

static int publish_to_recipient(struct plugin *plugin, const struct frame_notification *notification,
                                const char *client_id) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };

        topic_append_notify(&topic, slice_from_string(client_id), notification->key);
        if (topic.length > TOPIC_LENGTH_MAX)
                return -EINVAL;
        publish_count(plugin, topic.length + notification->payload.length);
        return publish_to_clients(client_id, &topic,
                                  &(struct publication){ .user_properties = notification->properties,
                                                         .payload = notification->payload });
}

int notification_publish(struct plugin *plugin, const struct frame_notification *notification) {
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
uint64_t notifications_published(const struct plugin *plugin) {
        const struct notification_position *position = &plugin->position;

        if (position->n_recipients == ALL_RECIPIENTS || position->sequence == 0)
                return position->sequence;
        return position->sequence - 1;
}
