/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "base/bytes.h"
#include "base/endpoint.h"

/*
 * A small HTTP server on the loop, for those who watch over us: libmicrohttpd, GET only, bounded in connections, in
 * memory and in time, so that a hostile peer costs little and no request of the store's.
 */
struct http;

struct http_page {
        const char *path;
        const char *content_type;

        /* Appends the body; returns the status. */
        unsigned int (*render)(void *userdata, struct buf *body);
};

/*
 * Listens at the endpoint, whose host is a numeric address. pages and userdata are borrowed until http_close(). Returns
 * 0, -EINVAL for an address that is none, -EADDRINUSE, -ENOMEM, or what listening failed with.
 */
int http_open(struct http **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              const struct http_page *pages, size_t n_pages, void *userdata);

/* Accepts NULL. The rest is freed by the loop. */
void http_close(struct http *http);
