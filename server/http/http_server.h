/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/endpoint.h"

/*
 * An HTTP/1.1 server, based on libmicrohttpd. It runs on the event loop of the store. Its
 * connections, memory, time and share of the processor are bounded, so a hostile peer cannot slow
 * the requests of the store noticeably:
 *
 *   connections      16 of one address; more are closed when they are accepted. 128 together; above
 *                    them the address with the most connections that wait for their peers loses its
 *                    oldest one. At most about 100 may wait for handlers
 *   silence          a connection that neither receives nor sends for 2 s is closed, unless its
 *                    exchange waits for the handler
 *   request          line and headers together at most 32 KiB, else 414 or 431
 *                    one Content-Length, one Host, no blank before a colon, else 400: a proxy may
 *                    have read such a request in another way
 *   body             HTTP_BODY_MAX bytes, else 413. Bodies that arrive have HTTP_BODIES_MAX together;
 *                    above this the address with the most loses the connection of its oldest one
 *   replies          HTTP_REPLIES_MAX bytes that peers have not read yet, else 429
 *   send buffer      256 KiB in the kernel for each connection
 *   processor        a run of the library handles one request of each address. After each run, a pause
 *                    of ten times its duration
 *
 * Each response has headers that restrict what a browser does with it: a Content-Security-Policy
 * that permits only what comes from this server, nosniff, no referrer, and Cache-Control: no-store
 * unless http_add_header() has given another one.
 *
 *     static void handle_key(void *userdata, struct http_exchange *exchange) {
 *             struct buf body = { 0 };
 *
 *             buf_append_slice(&body, http_argument(exchange, "key"));
 *             http_reply(exchange, 200, "text/plain", &body);
 *     }
 */
struct http_server;

/* A request, and the reply to it. Valid until the exchange has ended (struct http_waiting). */
struct http_exchange;

/* Status codes of the replies. */
enum http_status {
        HTTP_OK = 200,
        HTTP_NOT_MODIFIED = 304,
        HTTP_BAD_REQUEST = 400,
        HTTP_UNAUTHORIZED = 401,
        HTTP_FORBIDDEN = 403,
        HTTP_NOT_FOUND = 404,
        HTTP_METHOD_NOT_ALLOWED = 405,
        HTTP_LENGTH_REQUIRED = 411,
        HTTP_TOO_LARGE = 413,
        HTTP_WRONG_TYPE = 415,
        HTTP_TOO_MANY = 429,
        HTTP_UNAVAILABLE = 503,
};

#define HTTP_BODY_MAX    ((size_t)1 << 20)
#define HTTP_BODIES_MAX  ((size_t)8 << 20)
#define HTTP_REPLIES_MAX ((size_t)64 << 20)

/* 1. Routes */

struct http_route {
        const char *method;  /* "GET", which also serves HEAD, or "POST" */
        const char *path;    /* exactly */
        unsigned int needs;  /* of the peer: for admit() */
        const void *subject; /* for a handler of several routes */

        /*
         * Handle a request whose body has arrived. Call one of http_reply(), http_reply_constant(),
         * http_reply_error(), http_wait() and http_stream(), once.
         */
        void (*handle)(void *userdata, struct http_exchange *exchange);
};

struct http_routes {
        const struct http_route *routes;
        size_t n_routes;

        /*
         * Called when the headers have arrived, before the body is read, and again when it is read. Return
         * whether the request is admitted; if not, reply or call http_wait() first. NULL: each request is
         * admitted.
         */
        bool (*admit)(void *userdata, struct http_exchange *exchange);
        void *userdata; /* of admit() and handle() */
};

/* PEM texts, for TLS. */
struct http_tls {
        const char *certificate; /* followed by those of its issuers; NULL: no TLS */
        const char *key;
};

/*
 * Listen at the endpoint, whose host must be a numeric address. Port 0: any free one. The texts of
 * tls are only read by this call. Returns 0, -EINVAL if the host is not an address, -EBADMSG if the
 * certificate or the key is not valid, -EADDRINUSE, -ENOMEM, or another -errno.
 */
int http_open(struct http_server **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              const struct http_tls *tls);

/*
 * Add routes, which are borrowed until http_close(). The first route with the path of a request
 * decides. At most HTTP_ROUTES_MAX calls.
 */
#define HTTP_ROUTES_MAX 8
void http_add_routes(struct http_server *http, const struct http_routes *routes);

/* The port at which the server listens. */
uint16_t http_port(const struct http_server *http);

/*
 * Close the server. Each exchange ends before this returns. Accepts NULL. The loop frees the server
 * in a later iteration. Must not be called from a function of a route.
 */
void http_close(struct http_server *http);

/* 2. The request. All results are borrowed from the exchange. */

/* The route of the request. */
const struct http_route *http_route(const struct http_exchange *exchange);

/* A query argument, decoded. Absent if the request lacks it. It may contain any bytes. */
struct slice http_argument(const struct http_exchange *exchange, const char *name);

/* A header. Absent if the request lacks it. */
struct slice http_header(const struct http_exchange *exchange, const char *name);

/* Empty, except in handle(). */
struct slice http_body(const struct http_exchange *exchange);

/* The address of the peer, as text. */
struct http_peer {
        char text[46];
};
struct http_peer http_peer(const struct http_exchange *exchange);

/* 3. The reply */

/*
 * Add a header to the reply, before http_reply(). A value that no header can have, such as one with
 * a newline, is dropped with its name.
 */
void http_add_header(struct http_exchange *exchange, const char *name, struct slice value);

/*
 * Reply, from a function of the route or, after http_wait(), at any later time. Takes the content of
 * the body, which is empty afterwards. If an allocation of the body has failed, or without memory for
 * the reply, the connection is closed. If HTTP_REPLIES_MAX is reached, the reply is 429.
 */
void http_reply(struct http_exchange *exchange, unsigned int status, const char *content_type,
                struct buf *body);

/* As http_reply(), with a body that exists as long as the process. */
void http_reply_constant(struct http_exchange *exchange, unsigned int status, const char *content_type,
                         struct slice body);

/* As http_reply(), with {"error":"TEXT"}. */
void http_reply_error(struct http_exchange *exchange, unsigned int status, const char *text);

/* What a handler that does not reply at once is told. */
struct http_waiting {
        /*
         * Write the next bytes of a stream to memory with room for n_max bytes, and return their
         * number. 0: there are none now; the function is called again after http_resume().
         * HTTP_STREAM_END: the stream has ended. Must not call any function of the exchange.
         */
        size_t (*read)(void *userdata, uint8_t *bytes, size_t n_max);

        /*
         * The exchange has ended, and is not valid any more: the reply was sent, the peer has closed
         * the connection, or the server was closed. Called once. While an exchange waits, a closed
         * connection is not noticed before the next reply or the next bytes of the stream.
         */
        void (*ended)(void *userdata);
        void *userdata;
};
#define HTTP_STREAM_END SIZE_MAX

/* Reply later, by http_reply(). The read() of waiting is not used. */
void http_wait(struct http_exchange *exchange, const struct http_waiting *waiting);

/*
 * Reply with a stream of bytes, as long as read() has some; HEAD gets 405. A peer that does not read
 * for 2 s is disconnected; until then its bytes wait in the caller, beyond the send buffer.
 */
void http_stream(struct http_exchange *exchange, const char *content_type,
                 const struct http_waiting *waiting);

/* There are bytes for a stream whose read() has returned 0. At other times the call does nothing. */
void http_resume(struct http_exchange *exchange);
