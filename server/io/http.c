/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmicrohttpd watches its sockets with an epoll instance of its own; the loop watches that one, and tells the
 * library when there is something to do, or time has passed.
 */

#include "io/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"

#define CONNECTIONS_MAX      64
#define CONNECTION_MEMORY    8192
#define CONNECTION_TIMEOUT_S 10

struct http {
        struct MHD_Daemon *daemon;
        uv_poll_t poll;
        uv_timer_t timer;
        const struct http_page *pages;
        size_t n_pages;
        void *userdata;
        int n_open_handles;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned int status,
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

static enum MHD_Result answer(void *userdata, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload, size_t *n_upload,
                              void **state) {
        CLEANUP(buf_deinit) struct buf body = { 0 };
        struct http *http = userdata;
        unsigned int status;

        (void)version;
        (void)upload;
        (void)n_upload;
        (void)state;
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                return respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
                               SLICE_LITERAL("GET was expected\n"));

        for (size_t i = 0; i < http->n_pages; i++) {
                if (strcmp(path, http->pages[i].path) != 0)
                        continue;
                status = http->pages[i].render(http->userdata, &body);
                if (buf_failed(&body))
                        return MHD_NO;
                return respond(connection, status, http->pages[i].content_type, buf_slice(&body));
        }
        return respond(connection, MHD_HTTP_NOT_FOUND, "text/plain",
                       SLICE_LITERAL("there is no such page\n"));
}

static void turn(struct http *http);

static void on_time(uv_timer_t *timer) {
        turn(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events) {
        (void)status;
        (void)events;
        turn(poll->data);
}

static void turn(struct http *http) {
        MHD_UNSIGNED_LONG_LONG timeout_ms;

        MHD_run(http->daemon);
        if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
                uv_timer_start(&http->timer, on_time, timeout_ms, 0);
        else
                uv_timer_stop(&http->timer);
}

/* A socket that listens there. Returns it, or -errno. */
static int listen_at(const struct endpoint *endpoint) {
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(endpoint->port) };
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(endpoint->port) };
        bool is_four = inet_pton(AF_INET, endpoint->host, &four.sin_addr) == 1;
        const struct sockaddr *address = is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six;
        socklen_t length = is_four ? sizeof(four) : sizeof(six);
        int fd, on = 1, r;

        if (!is_four && inet_pton(AF_INET6, endpoint->host, &six.sin6_addr) != 1)
                return -EINVAL;

        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 || bind(fd, address, length) < 0 ||
            listen(fd, CONNECTIONS_MAX) < 0) {
                r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

static void http_cleanup(struct http **http) {
        if (*http && (*http)->daemon)
                MHD_stop_daemon((*http)->daemon);
        free(*http);
}

int http_open(struct http **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              const struct http_page *pages, size_t n_pages, void *userdata) {
        CLEANUP(http_cleanup) struct http *http = calloc(1, sizeof(*http));
        const union MHD_DaemonInfo *info;
        int fd;

        if (!http)
                return -ENOMEM;

        fd = listen_at(endpoint);
        if (fd < 0)
                return fd;

        *http = (struct http){ .pages = pages, .n_pages = n_pages, .userdata = userdata };
        http->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, http, MHD_OPTION_LISTEN_SOCKET,
                                        fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX,
                                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                                        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)CONNECTION_TIMEOUT_S,
                                        MHD_OPTION_END);
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
        uv_poll_start(&http->poll, UV_READABLE, on_ready);

        *ret_http = take_ptr(&http);
        return 0;
}

static void handle_closed(uv_handle_t *handle) {
        struct http *http = handle->data;

        if (--http->n_open_handles == 0)
                free(http);
}

void http_close(struct http *http) {
        if (!http)
                return;

        uv_close((uv_handle_t *)&http->poll, handle_closed);
        uv_close((uv_handle_t *)&http->timer, handle_closed);
        MHD_stop_daemon(take_ptr(&http->daemon));
}
