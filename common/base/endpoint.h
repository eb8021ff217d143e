/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* The address of a listener: a broker's, or the store's HTTP server's. */
struct endpoint {
        char *host;    /* a host name, an IP address, or the path of a Unix socket; owned */
        uint16_t port; /* 0: host is the path of a Unix socket */
};

/*
 * Parse a comma-separated list of endpoints. Each endpoint is one of:
 *
 *     HOST, HOST:PORT                a name or an IPv4 address
 *     ADDRESS, [ADDRESS]:PORT        an IPv6 address
 *     /PATH                          a Unix socket
 *
 * Blanks around an endpoint are ignored. A host or path has at most 255 bytes. default_port applies
 * to endpoints without a port. Returns 0, -EINVAL for a syntax error, or -ENOMEM. On success there
 * is at least one endpoint, and the caller frees *ret_endpoints with endpoints_free().
 */
int endpoints_parse(struct slice text, uint16_t default_port, struct endpoint **ret_endpoints,
                    size_t *ret_n_endpoints);

/*
 * Check the syntax of a list of endpoints. Returns 0, -EINVAL or -ENOMEM, as endpoints_parse()
 * does.
 */
int endpoints_check(struct slice text);

/* Accepts NULL. */
void endpoints_free(struct endpoint *endpoints, size_t n_endpoints);

/*
 * HOST:PORT, [ADDRESS]:PORT or the path, for log messages. NUL-terminated. Every endpoint of
 * endpoints_parse() fits.
 */
struct endpoint_text {
        char text[280];
};
struct endpoint_text endpoint_text(const struct endpoint *endpoint);
