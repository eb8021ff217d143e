/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "base/bytes.h"
#include "base/endpoint.h"

/*
 * A small HTTP server for monitoring, on the loop: libmicrohttpd, GET only. Its connections, memory and time
 * are bounded, so a hostile peer cannot slow the requests of the store noticeably.
 */
struct http;

struct http_page {
        const char *path;
        const char *content_type;

        /* Append the body. Returns the HTTP status. */
        unsigned int (*render)(void *userdata, struct buf *body);
};

/*
 * Listen at the endpoint, whose host must be a numeric address. pages and userdata are borrowed until
 * http_close(). Returns 0, -EINVAL if the host is not an address, -EADDRINUSE, -ENOMEM, or another -errno.
 */
int http_open(struct http **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              const struct http_page *pages, size_t n_pages, void *userdata);

/* Close the server. Accepts NULL. The handles are freed in a later iteration of the loop. */
void http_close(struct http *http);
