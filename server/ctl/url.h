/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * mqtt://[user[:password]@]host[:port][/]: user and password may be %-encoded, an IPv6 address stands in
 * brackets, the port is 1883 unless given.
 */
struct url {
        char *text; /* owned; what the others point into */
        const char *host;
        uint16_t port;
        const char *user;     /* NULL: none */
        const char *password; /* NULL: none */
};

/* Returns 0, -EINVAL for text that is not of the form, or -ENOMEM. */
int url_init(struct url *url, const char *text);

/* All zeros may be given too, and is what is left. */
void url_deinit(struct url *url);

/* A port from 1 to 65535. Returns 0 or -EINVAL. */
int port_parse(const char *text, uint16_t *ret_port);
