/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Publish replies and notifications to clients. Each adds the estimated time that the broker needs for
 * it to plugin->publish_ns.
 */

struct frame_notification;
struct frame_reply;
struct plugin;
struct record;

/*
 * How far the plugin has published the notifications of the store (COMPANION_FRAME_TO_PLUGIN).
 */
struct notification_position {
        uint64_t sequence;     /* of the change; 0: no notification of this instance id was published */
        uint64_t n_recipients; /* recipients of the change that are finished; UINT64_MAX: all */
};

/*
 * Publish a reply of the store. Returns 0, -ENOMEM, or -EINVAL if the request has no Response Topic,
 * or the broker refuses the reply.
 */
int publish_reply(struct plugin *plugin, const struct record *record, const struct frame_reply *reply);

/* Publish an error as the reply of the plugin. If memory is short, do nothing. */
void publish_error(struct plugin *plugin, const struct record *record, const char *text);

/*
 * Publish the notification to its recipients that are connected and not finished. Returns 0 or
 * -ENOMEM: the rest is not finished.
 */
int publish_notification(struct plugin *plugin, const struct frame_notification *notification);

/* The sequence of the last change that is published completely. */
uint64_t publish_last_complete(const struct plugin *plugin);
