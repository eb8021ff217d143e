/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "io/credentials.h"

/* A libmosquitto client as we need it: MQTT 5, no Nagle, wide windows, a session that outlives the connection. */

/*
 * Messages in flight to the broker at once, unless it allows fewer: every publish and every PUBACK walks the
 * library's list of them.
 */
#define CLIENT_SEND_MAXIMUM 1000

/* Returns 0, -EINVAL for a client id or certificate that cannot be used, or -ENOMEM. */
int client_new(struct mosquitto **ret_client, const char *client_id, const struct credentials *credentials,
               void *userdata);

/* Disconnects without ending the session, so that all that was written arrives. Takes two seconds at most. */
void client_disconnect(struct mosquitto *client);
