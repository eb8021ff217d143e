/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Keeps a free TCP port on 127.0.0.1 for a process that will listen there with SO_REUSEADDR: until the socket is closed, the
 * kernel gives the port to nobody who asks for any. Returns the socket or -errno.
 */
int port_reserve(uint16_t *ret_port);
