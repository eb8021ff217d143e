/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "protocol/message.h"

/* Between our messages and libmosquitto's. */

/* A message that arrived. Owns what libmosquitto's property readers copied; the rest is the library's. */
struct mqtt_incoming {
        struct message message;
        void *owned[2 + 2 * MESSAGE_USER_PROPERTIES_MAX];
        size_t n_owned;
};

/*
 * Fills *incoming, to be given back with mqtt_incoming_deinit() whatever is returned. Of the user properties
 * the first of each name in `wanted`, which an absent one ends, is kept. Returns 0 or -ENOMEM.
 */
int mqtt_incoming_init(struct mqtt_incoming *incoming, const struct mosquitto_message *message,
                       const mosquitto_property *properties, const struct slice *wanted);
void mqtt_incoming_deinit(struct mqtt_incoming *incoming);

/*
 * The properties of a message to be sent; the caller frees them with mosquitto_property_free_all(). Returns 0,
 * -EINVAL for text that MQTT cannot carry, or -ENOMEM.
 */
int mqtt_properties_new(mosquitto_property **ret_properties, const struct message *message);

/* A result of libmosquitto's as -errno. MOSQ_ERR_SUCCESS gives 0. */
int mqtt_error(int result);
