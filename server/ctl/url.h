/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The parts of mqtt://[user[:password]@]host[:port][/]. User and password may be %-encoded. An IPv6 address stands in
 * brackets, in the URL and in host. The texts are libcurl's; url_deinit() frees them.
 */
struct url {
        char *host;
        uint16_t port;  /* 1883 where the URL has none */
        char *user;     /* NULL: none */
        char *password; /* NULL: none */
};

/* Returns 0, or -EINVAL for text that is not of the form. *ret_url is written on success only. */
int url_init(struct url *ret_url, const char *text);

/* Accepts all zeros, and leaves them. */
void url_deinit(struct url *url);
