/* SPDX-License-Identifier: Apache-2.0 */

/* The server on a loop, and its peers: sockets that the test polls while it runs the loop. */

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "http/http_server.h"
#include "http/internal.h"

static uv_loop_t loop;
static struct http_server *http;

/* The exchange of /later or /stream, while it waits. */
static struct http_exchange *waiting;
static unsigned int n_ended, n_refused_later;
static struct buf stream; /* what the stream has left to send */
static bool is_stream_over, is_admitting, is_refusing_later;
static size_t n_bytes_of_zeros;
static unsigned int n_counted[2]; /* requests of 127.0.0.1 and of 127.0.0.2 */

static void take_ended(void *userdata) {
        (void)userdata;
        waiting = NULL;
        n_ended++;
}

/* Read from `stream`, then from n_bytes_of_zeros. */
static size_t read_stream(void *userdata, uint8_t *bytes, size_t n_max) {
        size_t n = stream.length < n_max ? stream.length : n_max;

        (void)userdata;
        if (n > 0) {
                memcpy(bytes, stream.data, n);
                memmove(stream.data, stream.data + n, stream.length - n);
                stream.length -= n;
                return n;
        }
        if (n_bytes_of_zeros > 0) {
                n = n_bytes_of_zeros < n_max ? n_bytes_of_zeros : n_max;
                memset(bytes, '0', n);
                n_bytes_of_zeros -= n;
                return n;
        }
        return is_stream_over ? HTTP_STREAM_END : 0;
}

static const struct http_waiting waits = { .read = read_stream, .ended = take_ended };

/* Show what a handler sees of the request. */
static void handle_echo(void *userdata, struct http_exchange *exchange) {
        struct slice argument = http_argument(exchange, "a");
        struct buf body = { 0 };

        (void)userdata;
        buf_append_format(&body, "peer=%s a=", http_peer(exchange).text);
        if (argument.data)
                buf_append_slice(&body, argument);
        else
                buf_append_string(&body, "absent");
        buf_append_string(&body, " x-b=");
        buf_append_slice(&body, http_header(exchange, "X-B"));
        buf_append_format(&body, " body=%zu:", http_body(exchange).length);
        buf_append(&body, http_body(exchange).data,
                   http_body(exchange).length > 10 ? 10 : http_body(exchange).length);
        http_add_header(exchange, "X-Shown", SLICE_LITERAL("yes"));
        http_add_header(exchange, "X-Split", SLICE_LITERAL("a\r\nX-Injected: b"));
        http_add_header(exchange, "X-Nul", (struct slice){ (const uint8_t *)"a\0X-Injected\0b", 14 });
        http_reply(exchange, HTTP_OK, "text/plain", &body);
}

static void handle_count(void *userdata, struct http_exchange *exchange) {
        (void)userdata;
        n_counted[strcmp(http_peer(exchange).text, "127.0.0.1") != 0]++;
        http_reply_constant(exchange, HTTP_OK, "text/plain", SLICE_LITERAL("counted"));
}

static void handle_later(void *userdata, struct http_exchange *exchange) {
        (void)userdata;
        waiting = exchange;
        http_wait(exchange, &waits);
}

static void handle_stream(void *userdata, struct http_exchange *exchange) {
        (void)userdata;
        waiting = exchange;
        http_stream(exchange, "text/event-stream", &waits);
}

static bool admit(void *userdata, struct http_exchange *exchange) {
        (void)userdata;
        if (is_admitting || http_route(exchange)->needs == 0)
                return true;
        if (is_refusing_later) {
                waiting = exchange;
                n_refused_later++;
                http_wait(exchange, &waits);
                return false;
        }
        http_reply_error(exchange, HTTP_UNAUTHORIZED, "a \"token\" is missing");
        return false;
}

static const struct http_route routes[] = {
        { "GET", "/echo", .handle = handle_echo },
        { "POST", "/echo", .handle = handle_echo },
        { "GET", "/count", .handle = handle_count },
        { "GET", "/later", .handle = handle_later },
        { "POST", "/later", .handle = handle_later },
        { "GET", "/stream", .handle = handle_stream },

        { "GET", "/secret", .needs = 1, .handle = handle_echo },
        { "POST", "/guarded", .needs = 1, .handle = handle_echo },
};

static void setup(void) {
        struct endpoint endpoint = { .host = (char *)"127.0.0.1" };

        is_admitting = true;
        cr_assert_eq(uv_loop_init(&loop), 0);
        cr_assert_eq(http_open(&http, &loop, &endpoint, &(struct http_tls){ 0 }), 0);
        http_add_routes(http, &(struct http_routes){ routes, ARRAY_LENGTH(routes), admit, NULL });
}

static void close_server(void) {
        http_close(http);
        http = NULL;
        uv_run(&loop, UV_RUN_DEFAULT);
}

static void teardown(void) {
        close_server();
        cr_assert_eq(uv_loop_close(&loop), 0);
        buf_deinit(&stream);
}

TestSuite(http_server, .init = setup, .fini = teardown);

/* 1. Peers */

struct peer {
        int fd;
        struct buf received;
        bool is_closed; /* by the server */
};

static struct peer peer_open_from(in_addr_t own_address) {
        struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(own_address) };
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons(http_port(http)),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct peer peer = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };

        cr_assert_eq(bind(peer.fd, (struct sockaddr *)&own, sizeof(own)), 0);
        cr_assert_eq(connect(peer.fd, (struct sockaddr *)&address, sizeof(address)), 0);
        fcntl(peer.fd, F_SETFL, O_NONBLOCK);
        return peer;
}

static struct peer peer_open(void) {
        return peer_open_from(INADDR_LOOPBACK);
}

static void peer_close(struct peer *peer) {
        close(peer->fd);
        buf_deinit(&peer->received);
}

/* Run the loop once, and receive what has arrived. */
static void peer_turn(struct peer *peer) {
        uint8_t bytes[65536];
        ssize_t n;

        uv_run(&loop, UV_RUN_NOWAIT);
        poll(&(struct pollfd){ peer->fd, POLLIN, 0 }, 1, 1);
        while ((n = recv(peer->fd, bytes, sizeof(bytes), 0)) > 0)
                buf_append(&peer->received, bytes, (size_t)n);
        peer->is_closed |= n == 0 || (n < 0 && errno != EAGAIN);
}

static void peer_send(struct peer *peer, struct slice text) {
        while (text.length > 0) {
                ssize_t n = send(peer->fd, text.data, text.length, MSG_NOSIGNAL);

                if (n < 0)
                        peer_turn(peer);
                else
                        text = slice_skip(text, (size_t)n);
                cr_assert_not(peer->is_closed);
        }
}

/* Receive until the text has arrived. */
static void peer_expect(struct peer *peer, const char *text) {
        while (!strstr(buf_text(&peer->received) ?: "", text)) {
                cr_assert_not(peer->is_closed, "instead of \"%s\": %s", text, buf_text(&peer->received));
                peer_turn(peer);
        }
}

static bool peer_has(struct peer *peer, const char *text) {
        return strstr(buf_text(&peer->received), text);
}

/* Send the request, and receive until the connection is closed. */
static struct peer ask(const char *request) {
        struct peer peer = peer_open();

        peer_send(&peer, slice_from_string(request));
        while (!peer.is_closed)
                peer_turn(&peer);
        buf_text(&peer.received);
        return peer;
}

#define CLOSING " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

/* Whether the response to the request has this text. */
static bool answers(const char *request, const char *expected) {
        struct peer peer = ask(request);
        bool has = peer_has(&peer, expected);

        if (!has)
                cr_log_warn("instead of \"%s\": %s", expected, buf_text(&peer.received));
        peer_close(&peer);
        return has;
}

/* 2. Requests */

Test(http_server, passes_arguments_headers_body_and_peer) {
        cr_expect(answers("GET /echo?a=%C3%A4+b%2Fc&d" CLOSING "X-B: 7\r\n\r\n",
                          "peer=127.0.0.1 a=\xC3\xA4 b/c x-b=7 body=0:"));
        cr_expect(answers("GET /echo" CLOSING "\r\n", "a=absent x-b= body=0:"));
        cr_expect(answers("POST /echo" CLOSING "Content-Length: 5\r\n\r\nhello", "body=5:hello"));
        cr_expect(answers("POST /echo" CLOSING "Content-Length: 0\r\n\r\n", "body=0:"));
}

Test(http_server, each_address_has_one_request_in_a_turn_of_the_loop) {
        struct peer peers[8], other;

        for (size_t i = 0; i < ARRAY_LENGTH(peers); i++) {
                peers[i] = peer_open();
                peer_send(&peers[i], SLICE_LITERAL("GET /count" CLOSING "\r\n"));
        }
        other = peer_open_from(INADDR_LOOPBACK + 1);
        peer_send(&other, SLICE_LITERAL("GET /count" CLOSING "\r\n"));

        while (n_counted[0] < ARRAY_LENGTH(peers)) {
                unsigned int n_before = n_counted[0];

                uv_run(&loop, UV_RUN_NOWAIT); /* ONCE would run the timers twice */
                cr_assert_leq(n_counted[0], n_before + 1);
                cr_assert(n_counted[0] < 2 || n_counted[1] == 1, "the other address does not wait");
        }
        for (size_t i = 0; i < ARRAY_LENGTH(peers); i++) {
                peer_expect(&peers[i], "counted");
                peer_close(&peers[i]);
        }
        peer_close(&other);
}

Test(http_server, argument_may_have_any_bytes) {
        struct peer peer = ask("GET /echo?a=%00%01" CLOSING "\r\n");
        struct slice rest = buf_slice(&peer.received);

        while (rest.length > 0 && !slice_starts_with(rest, (struct slice){ (const uint8_t *)"a=\0\1 x", 6 }))
                rest = slice_skip(rest, 1);
        cr_expect_gt(rest.length, 0);
        peer_close(&peer);
}

Test(http_server, answers_by_method_and_path) {
        cr_expect(answers("GET /nothing" CLOSING "\r\n", "HTTP/1.1 404 "));
        cr_expect(answers("POST /stream" CLOSING "\r\n", "HTTP/1.1 405 "));
        cr_expect(answers("DELETE /echo" CLOSING "\r\n", "HTTP/1.1 405 "));
        cr_expect(answers("HEAD /echo" CLOSING "\r\n", "HTTP/1.1 200 "));
}

Test(http_server, headers_restrict_the_browser) {
        struct peer peer = ask("GET /echo" CLOSING "\r\n");

        cr_expect(peer_has(&peer,
                           "\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; style-src "
                           "'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
                           "form-action 'none'; frame-ancestors 'none'\r\n"));
        cr_expect(peer_has(&peer, "\r\nX-Content-Type-Options: nosniff\r\n"));
        cr_expect(peer_has(&peer, "\r\nReferrer-Policy: no-referrer\r\n"));
        cr_expect(peer_has(&peer, "\r\nCache-Control: no-store\r\n"));
        cr_expect(peer_has(&peer, "\r\nX-Shown: yes\r\n"));
        cr_expect_not(peer_has(&peer, "X-Injected"));
        peer_close(&peer);
        cr_expect(answers("GET /nothing" CLOSING "\r\n", "\r\nX-Content-Type-Options: nosniff\r\n"));
}

Test(http_server, refuses_a_body_that_is_too_large_before_it_arrives) {
        cr_expect(answers("POST /echo" CLOSING "Content-Length: 1048577\r\n\r\n", "HTTP/1.1 413 "));
        cr_expect(answers("POST /echo" CLOSING "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 411 "));
        cr_expect(
                answers("POST /echo" CLOSING "Content-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 4"));
}

/* Connect, and announce a body of the largest size without sending it. */
static struct peer announce_body(in_addr_t own_address, const char *path) {
        struct peer peer = peer_open_from(own_address);
        CLEANUP(buf_deinit) struct buf request = { 0 };

        buf_append_format(&request,
                          "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                          "Content-Length: 1048576\r\n\r\n",
                          path);
        peer_send(&peer, buf_slice(&request));
        peer_expect(&peer, "100 Continue");
        return peer;
}

static void send_body(struct peer *peer) {
        CLEANUP(buf_deinit) struct buf body = { 0 };

        while (body.length < HTTP_BODY_MAX)
                buf_append_string(&body, "0123456789abcdef");
        peer_send(peer, buf_slice(&body));
}

Test(http_server, accepts_a_body_of_the_largest_size) {
        struct peer peer = announce_body(INADDR_LOOPBACK, "/echo");

        send_body(&peer);
        peer_expect(&peer, "body=1048576:0123456789");
        peer_close(&peer);
}

Test(http_server, slow_bodies_of_an_address_make_room_for_those_of_others) {
        struct peer slow[HTTP_BODIES_MAX / HTTP_BODY_MAX], first;

        first = announce_body(INADDR_LOOPBACK + 1, "/echo");
        for (size_t i = 0; i < ARRAY_LENGTH(slow); i++)
                slow[i] = announce_body(INADDR_LOOPBACK, "/echo");
        while (!slow[0].is_closed)
                peer_turn(&slow[0]);
        cr_expect_not(slow[1].is_closed);

        send_body(&first);
        peer_expect(&first, "body=1048576:0123456789");
        peer_close(&first);
        for (size_t i = 0; i < ARRAY_LENGTH(slow); i++)
                peer_close(&slow[i]);
}

Test(http_server, body_of_a_waiting_request_takes_no_room) {
        struct peer waits_for_reply[HTTP_BODIES_MAX / HTTP_BODY_MAX], next;
        struct http_exchange *first = NULL;
        struct buf reply = { 0 };

        for (size_t i = 0; i < ARRAY_LENGTH(waits_for_reply); i++) {
                waits_for_reply[i] = announce_body(INADDR_LOOPBACK, "/later");
                waiting = NULL;
                send_body(&waits_for_reply[i]);
                while (!waiting)
                        peer_turn(&waits_for_reply[i]);
                first = first ?: waiting;
        }
        next = announce_body(INADDR_LOOPBACK, "/later");
        peer_close(&next);
        http_reply(first, HTTP_OK, "text/plain", &reply);
        peer_expect(&waits_for_reply[0], "HTTP/1.1 200 ");

        close_server();
        cr_expect_eq(n_ended, ARRAY_LENGTH(waits_for_reply));
        for (size_t i = 0; i < ARRAY_LENGTH(waits_for_reply); i++)
                peer_close(&waits_for_reply[i]);
}

Test(http_server, admits_before_the_body_is_read) {
        is_admitting = false;
        cr_expect(answers("POST /guarded" CLOSING "Content-Length: 1000000\r\n\r\n", "HTTP/1.1 401 "));
        cr_expect(answers("POST /guarded" CLOSING "\r\n",
                          "\r\n\r\n{\"error\":\"a \\\"token\\\" is missing\"}\n"));
        is_admitting = true;
        cr_expect(answers("POST /guarded" CLOSING "\r\n", "HTTP/1.1 200 "));
}

static const char *const ambiguous[] = {
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n",
        "GET /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
};

Test(http_server, ambiguous_request_is_refused_with_all_that_follows) {
        for (size_t i = 0; i < ARRAY_LENGTH(ambiguous); i++) {
                CLEANUP(buf_deinit) struct buf request = { 0 };
                struct peer peer;

                buf_append_format(&request, "%sGET /echo" CLOSING "\r\n", ambiguous[i]);
                peer = ask(buf_text(&request));
                cr_expect(peer_has(&peer, "HTTP/1.1 400 "), "%s", ambiguous[i]);
                cr_expect_not(peer_has(&peer, "HTTP/1.1 200 "), "%s", ambiguous[i]);
                peer_close(&peer);
        }
}

/* What follows a refused request on its connection is the body, not another request. */
Test(http_server, body_of_a_refused_request_is_no_request) {
        struct peer peer = peer_open();

        peer_send(&peer, SLICE_LITERAL("GET /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 36\r\n\r\n"
                                       "GET /echo?a=smuggled HTTP/1.1\r\nHost: x\r\n\r\n"));
        while (!peer.is_closed)
                peer_turn(&peer);
        cr_expect(peer_has(&peer, "HTTP/1.1 404 "));
        cr_expect_not(peer_has(&peer, "smuggled"));
        peer_close(&peer);
}

Test(http_server, connection_serves_several_requests) {
        struct peer peer = peer_open();

        for (int i = 0; i < 3; i++) {
                peer_send(&peer,
                          SLICE_LITERAL("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
                peer_expect(&peer, "body=2:hi");
                buf_reset(&peer.received);
        }
        peer_close(&peer);
}

/* 3. Replies that come later */

/* Send the request, and run the loop until its handler waits. */
static struct peer wait_for(const char *path) {
        struct peer peer = peer_open();
        char request[100];

        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
        peer_send(&peer, slice_from_string(request));
        while (!waiting)
                uv_run(&loop, UV_RUN_ONCE);
        return peer;
}

Test(http_server, replies_later) {
        struct peer peer = wait_for("/later");
        struct buf body = { 0 };

        cr_expect(answers("GET /echo?a=between" CLOSING "\r\n", "a=between"));
        buf_append_string(&body, "at last");
        http_add_header(waiting, "X-Late", SLICE_LITERAL("yes"));
        http_reply(waiting, HTTP_OK, "text/plain", &body);
        cr_expect_null(body.data);
        peer_expect(&peer, "\r\n\r\nat last");
        cr_expect(peer_has(&peer, "X-Late: yes"));
        while (n_ended == 0)
                peer_turn(&peer);

        peer_send(&peer, SLICE_LITERAL("GET /echo?a=next HTTP/1.1\r\nHost: x\r\n\r\n"));
        peer_expect(&peer, "a=next");
        peer_close(&peer);
}

Test(http_server, waiting_exchange_ends_with_the_server) {
        struct peer peer = wait_for("/later");

        close_server();
        cr_expect_eq(n_ended, 1);
        peer_close(&peer);
}

Test(http_server, request_is_refused_later_without_its_body) {
        struct peer peer = peer_open();

        is_admitting = false;
        is_refusing_later = true;
        peer_send(&peer, SLICE_LITERAL("POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"));
        while (!waiting)
                uv_run(&loop, UV_RUN_ONCE);
        peer_send(&peer, SLICE_LITERAL("some"));
        http_reply_error(waiting, HTTP_UNAUTHORIZED, "wrong");
        while (!peer.is_closed)
                peer_turn(&peer);
        cr_expect(peer_has(&peer, "HTTP/1.1 401 "));
        cr_expect_eq(n_refused_later, 1);
        cr_expect_eq(n_ended, 1);
        peer_close(&peer);
}

Test(http_server, refusal_that_waits_ends_with_the_server) {
        struct peer peer;

        is_admitting = false;
        is_refusing_later = true;
        peer = wait_for("/secret");
        close_server();
        cr_expect_eq(n_ended, 1);
        peer_close(&peer);
}

Test(http_server, reply_to_a_peer_that_has_gone_ends_the_exchange) {
        struct peer peer = wait_for("/later");
        struct buf body = { 0 };

        peer_close(&peer);
        http_reply(waiting, HTTP_OK, "text/plain", &body);
        while (n_ended == 0)
                uv_run(&loop, UV_RUN_ONCE);
}

Test(http_server, failed_allocation_closes_the_connection) {
        struct peer peer = wait_for("/later");
        struct buf body = { .failed = true };

        http_reply(waiting, HTTP_OK, "text/plain", &body);
        while (!peer.is_closed)
                peer_turn(&peer);
        cr_expect_eq(peer.received.length, 0);
        cr_expect_eq(n_ended, 1);
        peer_close(&peer);
}

/* There was memory for the name of a header, and none for its value. */
Test(http_server, failed_allocation_of_a_header_closes_the_connection) {
        struct peer peer = wait_for("/later");

        buf_append(&waiting->headers, "X-Late", sizeof("X-Late"));
        waiting->headers.failed = true;
        http_reply_constant(waiting, HTTP_OK, "text/plain", SLICE_LITERAL("body"));
        while (!peer.is_closed)
                peer_turn(&peer);
        cr_expect_eq(peer.received.length, 0);
        peer_close(&peer);
}

Test(http_server, unread_replies_share_a_limit) {
        struct peer first = wait_for("/later"), second;
        struct http_exchange *first_exchange = take_ptr(&waiting);
        struct buf body = { .data = calloc(1, HTTP_REPLIES_MAX), .length = HTTP_REPLIES_MAX };

        second = wait_for("/later");
        http_reply(first_exchange, HTTP_OK, "text/plain", &body);
        buf_append_string(&body, "too much");
        http_reply(waiting, HTTP_OK, "text/plain", &body);
        peer_expect(&second, "HTTP/1.1 429 ");
        peer_close(&second);

        peer_close(&first);
        while (n_ended < 2)
                uv_run(&loop, UV_RUN_ONCE);
        cr_expect(answers("GET /echo" CLOSING "\r\n", "HTTP/1.1 200 "));
}

/* 4. Streams */

Test(http_server, stream_sends_what_there_is_and_waits) {
        struct peer peer = wait_for("/stream");

        peer_expect(&peer, "\r\nContent-Type: text/event-stream\r\n");
        buf_append_string(&stream, "one\n");
        http_resume(waiting);
        peer_expect(&peer, "one\n");
        http_resume(waiting); /* nothing to send */
        buf_append_string(&stream, "two\n");
        http_resume(waiting);
        http_resume(waiting); /* not suspended any more */
        peer_expect(&peer, "two\n");
        cr_expect_eq(n_ended, 0);

        is_stream_over = true;
        http_resume(waiting);
        peer_expect(&peer, "\r\n0\r\n\r\n");
        while (n_ended == 0)
                peer_turn(&peer);
        peer_close(&peer);
}

Test(http_server, stream_has_no_head) {
        cr_expect(answers("HEAD /stream" CLOSING "\r\n", "HTTP/1.1 405 "));
        cr_expect_eq(n_ended, 1);
}

Test(http_server, stream_ends_when_a_closed_peer_is_written_to) {
        struct peer peer = wait_for("/stream");

        peer_close(&peer);
        while (n_ended == 0) {
                buf_append_string(&stream, ":\n");
                http_resume(waiting);
                uv_run(&loop, UV_RUN_ONCE);
        }
}

Test(http_server, stream_ends_with_the_server) {
        struct peer peer = wait_for("/stream");

        peer_expect(&peer, "text/event-stream");
        close_server();
        cr_expect_eq(n_ended, 1);
        peer_close(&peer);
}

/* A stopped peer costs its socket buffers, and then its connection. */
Test(http_server, peer_that_does_not_read_a_stream_is_disconnected) {
        const size_t n_bytes = (size_t)1 << 30;
        struct peer peer;

        n_bytes_of_zeros = n_bytes;
        peer = wait_for("/stream");
        while (n_ended == 0)
                uv_run(&loop, UV_RUN_ONCE);
        cr_expect_lt(n_bytes - n_bytes_of_zeros, 16 << 20);
        peer_close(&peer);
}
