/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmicrohttpd polls its sockets with its own epoll instance. The loop polls that instance, and
 * runs the library when the instance is readable or a timeout has expired.
 *
 * Monitoring must not slow the store. After each run of the library the loop pauses it for ten
 * times the duration of the run.
 *
 * The connections of one address must not block monitoring from another address: each address has a
 * limited number of connections. The library closes those above the limit when it accepts them.
 */

#include "http/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time_units.h"

#define CONNECTIONS_MAX      64
#define ADDRESS_CONNECTIONS  16 /* maximum number of connections of one address */
#define CONNECTION_MEMORY    8192
#define CONNECTION_TIMEOUT_S 2  /* of a connection that receives and sends nothing */
#define PAUSE_FACTOR         10 /* pause after a run, in durations of that run */

struct http_server {
        struct MHD_Daemon *daemon;
        uv_poll_t poll;
        uv_timer_t timer;
        bool is_paused;
        struct http_pages pages;
        int n_open_handles;
};

static enum MHD_Result queue_response(struct MHD_Connection *connection, unsigned int status,
                                      const char *content_type, struct slice body) {
        struct MHD_Response *response;
        enum MHD_Result result;

        response = MHD_create_response_from_buffer(body.length, (void *)body.data, MHD_RESPMEM_MUST_COPY);
        if (!response)
                return MHD_NO;

        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return result;
}

static enum MHD_Result handle_request(void *userdata, struct MHD_Connection *connection, const char *path,
                                      const char *method, const char *version, const char *upload,
                                      size_t *n_upload, void **state) {
        struct http_server *http = userdata;

        (void)version;
        (void)upload;
        (void)n_upload;
        (void)state;
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                return queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
                                      SLICE_LITERAL("GET was expected\n"));

        for (size_t i = 0; i < http->pages.n_pages; i++) {
                const struct http_page *page = &http->pages.pages[i];
                CLEANUP(buf_deinit) struct buf body = { 0 };
                unsigned int status;

                if (strcmp(path, page->path) != 0)
                        continue;
                status = page->render(http->pages.userdata, &body);
                if (buf_failed(&body))
                        return MHD_NO;
                return queue_response(connection, status, page->content_type, buf_slice(&body));
        }
        return queue_response(connection, MHD_HTTP_NOT_FOUND, "text/plain", SLICE_LITERAL("no such page\n"));
}

static void http_on_timer(uv_timer_t *timer);

static bool is_full(const struct http_server *http) {
        return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections ==
               CONNECTIONS_MAX;
}

static void run_library(struct http_server *http) {
        uint64_t from_ns = uv_hrtime(), took_ns;
        bool was_full = is_full(http);

        MHD_run(http->daemon);
        /* A run that begins with all connections in use stops polling the listening socket. */
        if (was_full && !is_full(http))
                MHD_run(http->daemon);

        took_ns = uv_hrtime() - from_ns;
        http->is_paused = true;
        uv_poll_stop(&http->poll);
        uv_update_time(http->timer.loop);
        uv_timer_start(&http->timer, http_on_timer, PAUSE_FACTOR * took_ns / NS_PER_MS + 1, 0);
}

static void http_on_ready(uv_poll_t *poll, int status, int events) {
        (void)status;
        (void)events;
        run_library(poll->data);
}

/* The pause has ended, or the timeout of a connection has expired. */
static void http_on_timer(uv_timer_t *timer) {
        struct http_server *http = timer->data;
        MHD_UNSIGNED_LONG_LONG timeout_ms;

        if (!http->is_paused) {
                run_library(http);
                return;
        }

        http->is_paused = false;
        uv_poll_start(&http->poll, UV_READABLE, http_on_ready);
        if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
                uv_timer_start(&http->timer, http_on_timer, timeout_ms, 0);
}

/* Create a socket that listens at the endpoint. Returns it, or -errno. */
static int listen_at(const struct endpoint *endpoint) {
        struct sockaddr_in6 address6 = { .sin6_family = AF_INET6, .sin6_port = htons(endpoint->port) };
        struct sockaddr_in address4 = { .sin_family = AF_INET, .sin_port = htons(endpoint->port) };
        bool is_ipv4 = inet_pton(AF_INET, endpoint->host, &address4.sin_addr) == 1;
        const struct sockaddr *address =
                is_ipv4 ? (struct sockaddr *)&address4 : (struct sockaddr *)&address6;
        socklen_t length = is_ipv4 ? sizeof(address4) : sizeof(address6);
        int fd, on = 1, r;

        if (!is_ipv4 && inet_pton(AF_INET6, endpoint->host, &address6.sin6_addr) != 1)
                return -EINVAL;

        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, address, length) < 0 ||
            listen(fd, SOMAXCONN) < 0) {
                r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

static void free_server(struct http_server *http) {
        if (http->daemon)
                MHD_stop_daemon(http->daemon);
        free(http);
}

CLEANUP_FUNCTION(cleanup_http, struct http_server *, free_server)

int http_open(struct http_server **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              struct http_pages pages) {
        CLEANUP(cleanup_http) struct http_server *http = calloc(1, sizeof(*http));
        const union MHD_DaemonInfo *info;
        int fd;

        if (!http)
                return -ENOMEM;

        fd = listen_at(endpoint);
        if (fd < 0)
                return fd;

        *http = (struct http_server){ .pages = pages };
        http->daemon = MHD_start_daemon(
                MHD_USE_EPOLL, 0, NULL, NULL, handle_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX,
                MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)ADDRESS_CONNECTIONS,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
                (unsigned int)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
        if (!http->daemon) {
                close(fd);
                return -ENOMEM;
        }

        info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info || uv_poll_init(loop, &http->poll, info->epoll_fd) < 0)
                return -ENOMEM;
        uv_timer_init(loop, &http->timer);
        http->poll.data = http;
        http->timer.data = http;
        http->n_open_handles = 2;
        uv_poll_start(&http->poll, UV_READABLE, http_on_ready);

        *ret_http = take_ptr(&http);
        return 0;
}

static void http_on_handle_closed(uv_handle_t *handle) {
        struct http_server *http = handle->data;

        if (--http->n_open_handles == 0)
                free_server(http);
}

void http_close(struct http_server *http) {
        if (!http)
                return;

        uv_close((uv_handle_t *)&http->poll, http_on_handle_closed);
        uv_close((uv_handle_t *)&http->timer, http_on_handle_closed);
}
