/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "protocol/message.h"

/* Conversion between struct message and the messages and properties of libmosquitto. */

/*
 * A received message. libmosquitto owns topic and payload; `owned` lists the property values, which
 * are copies.
 */
struct mqtt_incoming {
        struct message message;
        void *owned[2 + 2 * MESSAGE_USER_PROPERTIES_MAX];
        size_t n_owned;
};

/*
 * Fill *incoming. Call mqtt_incoming_deinit() also after an error. wanted: the names of the user
 * properties to copy; a slice with data NULL ends the array. Only the first property of each name
 * is copied. Returns 0 or -ENOMEM.
 */
int mqtt_incoming_init(struct mqtt_incoming *incoming, const struct mosquitto_message *message,
                       const mosquitto_property *properties, const struct slice *wanted);
void mqtt_incoming_deinit(struct mqtt_incoming *incoming);

/*
 * Create the properties of a message to send. The caller frees them with
 * mosquitto_property_free_all(). Returns 0, -EINVAL if a string is not valid in MQTT, or -ENOMEM.
 */
int mqtt_properties_new(mosquitto_property **ret_properties, const struct message *message);

/* Convert a result of libmosquitto to 0 or -errno. */
int mqtt_error(int result);
