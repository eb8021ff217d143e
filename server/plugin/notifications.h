/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Notifications of the store, each published to one client. */

struct frame_notification;
struct plugin;

/*
 * How far the plugin has published the notifications of the store (COMPANION_FRAME_TO_PLUGIN).
 */
struct notification_position {
        uint64_t sequence;     /* of the change; 0: no notification of this instance id was published */
        uint64_t n_recipients; /* recipients of the change that are finished; UINT64_MAX: all */
};

/*
 * Publish the notification to its recipients that are connected and not finished. Returns 0 or
 * -ENOMEM: the rest is not finished.
 */
int notification_publish(struct plugin *plugin, const struct frame_notification *notification);

/* The sequence of the last change that is published completely. */
uint64_t notifications_published(const struct plugin *plugin);
