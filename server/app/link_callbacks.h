/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/control.h"

/* The link to the broker, and its callbacks, except those for messages: app/loop.h. */

struct server;

/* For test control. userdata is the server. */
outage_function server_begin_outage;

/*
 * Start to connect: the link is the transport of the pipeline. Returns 0, -ENOMEM, or -EINVAL (logged)
 * if a setting or a file is unusable.
 */
int server_open_link(struct server *server);
