/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Reserve a free TCP port on 127.0.0.1 for a process that will listen there with SO_REUSEADDR. Until the
 * socket is closed, the kernel does not assign the port to processes that request any port. Returns the
 * socket or -errno.
 */
int port_reserve(uint16_t *ret_port);
