/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "base/bytes.h"
#include "base/endpoint.h"

/*
 * An HTTP server for monitoring, based on libmicrohttpd. It runs on the event loop and accepts GET
 * and HEAD. Its connections, memory and time are bounded, so a hostile peer cannot slow the
 * requests of the store noticeably.
 */
struct http_server;

struct http_page {
        const char *path;
        const char *content_type;

        /* Append the body to an empty buffer. Returns the HTTP status. */
        unsigned int (*render)(void *userdata, struct buf *body);
};

struct http_pages {
        const struct http_page *pages;
        size_t n_pages;
        void *userdata; /* of render() */
};

/*
 * Listen at the endpoint, whose host must be a numeric address. The pages and their userdata are
 * borrowed until http_close(). Returns 0, -EINVAL if the host is not an address, -EADDRINUSE,
 * -ENOMEM, or another -errno.
 */
int http_open(struct http_server **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              struct http_pages pages);

/* Close the server. Accepts NULL. The loop frees the server in a later iteration. */
void http_close(struct http_server *http);
