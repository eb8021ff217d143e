/* SPDX-License-Identifier: Apache-2.0 */

/* A request as its handler sees it, and the reply. */

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "http/internal.h"

#define STREAM_BLOCK 4096

/* 1. The request */

const struct http_route *http_route(const struct http_exchange *exchange) {
        return exchange->route;
}

static struct slice find_value(const struct http_exchange *exchange, enum MHD_ValueKind kind,
                               const char *name) {
        const char *value = NULL;
        size_t length = 0;

        MHD_lookup_connection_value_n(exchange->connection->handle, kind, name, strlen(name), &value,
                                      &length);
        return (struct slice){ (const uint8_t *)value, length };
}

struct slice http_argument(const struct http_exchange *exchange, const char *name) {
        return find_value(exchange, MHD_GET_ARGUMENT_KIND, name);
}

struct slice http_header(const struct http_exchange *exchange, const char *name) {
        return find_value(exchange, MHD_HEADER_KIND, name);
}

struct slice http_body(const struct http_exchange *exchange) {
        return buf_slice(&exchange->body);
}

struct http_peer http_peer(const struct http_exchange *exchange) {
        const struct sockaddr *address =
                MHD_get_connection_info(exchange->connection->handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
                        ->client_addr;
        struct http_peer peer;

        if (address->sa_family == AF_INET)
                inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, peer.text,
                          sizeof(peer.text));
        else
                inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, peer.text,
                          sizeof(peer.text));
        return peer;
}

/* 2. The reply */

static const struct {
        const char *name, *value;
} default_headers[] = {
        { MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
        { "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
          "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
};

static void add_headers(const struct http_exchange *exchange, struct MHD_Response *response,
                        const char *content_type) {
        const char *at = (const char *)exchange->headers.data, *end = at + exchange->headers.length;

        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        while (at < end) {
                const char *value = at + strlen(at) + 1;

                MHD_add_response_header(response, at, value);
                at = value + strlen(value) + 1;
        }
        for (size_t i = 0; i < ARRAY_LENGTH(default_headers); i++)
                if (!MHD_get_response_header(response, default_headers[i].name))
                        MHD_add_response_header(response, default_headers[i].name, default_headers[i].value);
}

/* response NULL: without memory. */
static void set_response(struct http_exchange *exchange, unsigned int status, const char *content_type,
                         struct MHD_Response *response) {
        ASSERT(!exchange->response && exchange->status == 0);
        exchange->status = status;
        exchange->response = response;
        exchange->is_broken = !response || buf_failed(&exchange->headers);
        if (!exchange->is_broken)
                add_headers(exchange, response, content_type);
        http_resume(exchange);
}

void http_add_header(struct http_exchange *exchange, const char *name, struct slice value) {
        for (size_t i = 0; i < value.length; i++)
                if (value.data[i] < ' ' || value.data[i] == 0x7F)
                        return;
        if (value.length == 0)
                return;
        buf_append(&exchange->headers, name, strlen(name) + 1);
        buf_append_slice(&exchange->headers, value);
        buf_append(&exchange->headers, "", 1);
}

void http_reply(struct http_exchange *exchange, unsigned int status, const char *content_type,
                struct buf *body) {
        struct http_server *http = exchange->http;
        struct MHD_Response *response = NULL;

        if (!buf_failed(body) && http->n_reply_bytes + body->length > HTTP_REPLIES_MAX) {
                http_reply_error(exchange, HTTP_TOO_MANY, "other replies have not been read yet");
                buf_deinit(body);
                return;
        }
        if (!buf_failed(body))
                response = MHD_create_response_from_buffer(body->length, body->data, MHD_RESPMEM_MUST_FREE);
        if (response) {
                exchange->n_reply_bytes = body->length;
                http->n_reply_bytes += body->length;
                *body = (struct buf){ 0 };
        }
        buf_deinit(body);
        set_response(exchange, status, content_type, response);
}

void http_reply_constant(struct http_exchange *exchange, unsigned int status, const char *content_type,
                         struct slice body) {
        set_response(
                exchange, status, content_type,
                MHD_create_response_from_buffer(body.length, (void *)body.data, MHD_RESPMEM_PERSISTENT));
}

void http_reply_error(struct http_exchange *exchange, unsigned int status, const char *text) {
        CLEANUP(buf_deinit) struct buf body = { 0 };

        json_begin(&body);
        json_add_bytes(&body, "error", slice_from_string(text), false);
        json_end(&body);
        set_response(exchange, status, "application/json",
                     buf_failed(&body) ? NULL
                                       : MHD_create_response_from_buffer(body.length, body.data,
                                                                         MHD_RESPMEM_MUST_COPY));
}

void http_wait(struct http_exchange *exchange, const struct http_waiting *waiting) {
        exchange->waiting = *waiting;
}

static ssize_t read_stream(void *userdata, uint64_t position, char *bytes, size_t n_max) {
        struct http_exchange *exchange = userdata;
        size_t n = exchange->waiting.read(exchange->waiting.userdata, (uint8_t *)bytes, n_max);

        (void)position;
        if (n == HTTP_STREAM_END)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (n == 0)
                http_suspend(exchange);
        return (ssize_t)n;
}

void http_stream(struct http_exchange *exchange, const char *content_type,
                 const struct http_waiting *waiting) {
        exchange->waiting = *waiting;
        if (exchange->is_head)
                http_reply_error(exchange, HTTP_METHOD_NOT_ALLOWED, "a stream has no HEAD");
        else
                set_response(exchange, HTTP_OK, content_type,
                             MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream,
                                                               exchange, NULL));
}
