/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "base/bytes.h"

/* Publish replies and notifications to clients, and estimate the time that the broker needs for it. */

struct plugin;

/* A reply or a notification. */
struct publication {
        struct slice correlation_data; /* data NULL: absent */
        struct slice user_properties;  /* frame_property_next() */
        struct slice payload;
};

/*
 * Publish at QoS 1, with Payload Format Indicator and Content Type: to this client only, or to all
 * subscribers if client_id is NULL. Returns 0, -ENOMEM, or -EINVAL if the broker refuses it.
 */
int publish_to_clients(const char *client_id, struct buf *topic, const struct publication *publication);

/*
 * Count a reply or notification of the store with this many bytes of topic and payload: it adds to
 * the work of the present frame (struct to_store).
 */
void publish_count(struct plugin *plugin, size_t n_bytes);
