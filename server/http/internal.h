/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by http_server.c, which accepts connections and runs the exchanges, and http_exchange.c, which
 * has what a handler sees of a request, and its reply.
 */

#include <microhttpd.h>

#include "http/http_connections.h"
#include "http/http_server.h"

struct http_exchange {
        struct http_server *http;
        struct http_connection *connection;
        const struct http_routes *routes;
        const struct http_route *route;
        bool is_head;

        size_t n_body_reserved; /* of the server's n_body_bytes, until the body is handled */
        struct buf body;
        bool is_complete;

        struct buf headers; /* of the reply: NAME, NUL, VALUE, NUL ... */
        unsigned int status;
        struct MHD_Response *response; /* NULL: none yet, or queued */
        size_t n_reply_bytes;
        bool is_broken; /* close the connection instead of a reply */

        bool is_suspended;
        struct http_waiting waiting; /* zeros: the handler has replied at once */
};

struct http_server {
        struct MHD_Daemon *daemon;
        uv_poll_t poll;
        uv_timer_t timer;
        bool is_paused;
        bool has_resumed; /* a connection, since the begin of the last run of the library */
        uint64_t n_runs;  /* of the library */
        uint16_t port;
        struct http_routes routes[HTTP_ROUTES_MAX];
        size_t n_routes;
        struct http_connections connections;
        size_t n_body_bytes, n_reply_bytes; /* of all exchanges */
        int n_open_handles;
};

/* Let the library neither poll the connection nor apply its timeout, until http_resume(). */
void http_suspend(struct http_exchange *exchange);
