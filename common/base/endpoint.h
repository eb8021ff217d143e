/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Where a broker listens. */
struct endpoint {
        char *host;    /* a name, an address, or the path of a Unix socket */
        uint16_t port; /* 0: a Unix socket */
};

/*
 * Reads HOST[,HOST...], of which each is a name or an IPv4 address with or without :PORT, an IPv6 address bare or
 * as [ADDRESS]:PORT, or the path of a Unix socket, which begins with '/'. Returns 0, -EINVAL or -ENOMEM; the
 * caller frees *ret_endpoints, of which there is at least one, with endpoints_free().
 */
int endpoints_parse(struct slice text, uint16_t default_port, struct endpoint **ret_endpoints,
                    size_t *ret_n_endpoints);

/* Whether it can be read, whatever the port of those that name none. Returns as endpoints_parse(). */
int endpoints_check(struct slice text);

/* Accepts NULL. */
void endpoints_free(struct endpoint *endpoints, size_t n_endpoints);

/* HOST:PORT, [ADDRESS]:PORT or the path, for people. */
struct endpoint_text {
        char text[280];
};
struct endpoint_text endpoint_text(const struct endpoint *endpoint);
