/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/control.h"

/* The link to the broker: its callbacks, and sending. */

struct server;

/* For test control. userdata is the server. */
outage_function server_begin_outage;

/* Start to connect. Returns 0, -ENOMEM, or -EINVAL (logged) if a setting or a file is unusable. */
int server_open_link(struct server *server);

/* Functions of struct transport. userdata is the server. */
int server_publish(void *userdata, const struct message *message, uint16_t *ret_id);
bool server_has_room(void *userdata);
