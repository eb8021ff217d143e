/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plugin interface has no publish to several clients: each recipient needs its own list of
 * properties and payload.
 */

#include <errno.h>
#include <limits.h>

#include "base/cleanup.h"
#include "plugin/internal.h"

static int publish_notification(const struct frame_notification *notification, const char *client_id,
                                struct buf *topic) {
        CLEANUP(cleanup_properties) mosquitto_property *properties = NULL;
        const struct slice payload = notification->payload;
        int r;

        buf_reset(topic);
        topic_append_notify(topic, slice_from_string(client_id), notification->key);
        if (topic->length > TOPIC_LENGTH_MAX || payload.length > INT_MAX)
                return -EINVAL;
        if (!buf_text(topic))
                return -ENOMEM;
        r = properties_add(&properties, (struct slice){ 0 }, notification->properties);
        if (r < 0)
                return r;

        r = broker_errno(mosquitto_broker_publish_copy(client_id, buf_text(topic), (int)payload.length,
                                                       payload.data, 1, false, properties));
        if (r == 0)
                properties = NULL; /* owned by the broker */
        return r;
}

/*
 * Return the index in this notification of the first recipient that is not finished, or SIZE_MAX if
 * the notification adds nothing.
 */
static size_t first_unfinished(const struct notification_position *position,
                               const struct frame_notification *notification) {
        size_t end = notification->index + frame_n_recipients(notification);

        if (notification->sequence < position->sequence)
                return SIZE_MAX;
        if (notification->sequence > position->sequence)
                return 0;
        if (position->is_complete || end < position->n_recipients ||
            (end == position->n_recipients && !notification->is_last))
                return SIZE_MAX;
        return position->n_recipients > notification->index ? position->n_recipients - notification->index
                                                            : 0;
}

int notification_publish(struct plugin *plugin, const struct frame_notification *notification) {
        CLEANUP(buf_deinit) struct buf topic = { 0 };
        size_t i = first_unfinished(&plugin->position, notification);

        if (i == SIZE_MAX)
                return 0;
        for (; i < frame_n_recipients(notification); i++) {
                uint64_t number = frame_recipient(notification, i);
                const struct connection *connection = connections_find(&plugin->connections, number);

                plugin->position =
                        (struct notification_position){ notification->sequence,
                                                        notification->index + (uint32_t)i, false };
                if (connection &&
                    publish_notification(notification, connection->client_id, &topic) == -ENOMEM)
                        return -ENOMEM;
        }
        plugin->position =
                (struct notification_position){ notification->sequence, notification->index + (uint32_t)i,
                                                notification->is_last };
        return 0;
}

/* While a change is not complete, the one before it may have any lower sequence. */
uint64_t notifications_delivered(const struct plugin *plugin) {
        const struct notification_position *position = &plugin->position;

        if (position->is_complete || position->sequence == 0)
                return position->sequence;
        return position->sequence - 1;
}
