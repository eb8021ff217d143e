/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmicrohttpd polls its sockets with its own epoll instance. The loop polls that instance, and
 * runs the library when the instance is readable or a timeout has expired.
 *
 * The server must not slow the store. A run of the library handles one request of each address. After
 * each run the loop pauses the library for ten times the duration of the run.
 *
 * The connections of one address must not block those of another address: each address has a
 * limited number of connections. The library closes those above the limit when it accepts them. The
 * timeout of the library does not end a peer that sends a byte now and then, so connections that wait
 * for their peers are closed as soon as others need theirs.
 *
 * The library calls http_on_request() when the headers have arrived, for each part of the body, at
 * the end of the body, and again after a connection was resumed. It closes a connection whose reply
 * is queued before the body has arrived, so the body is not taken for a request. A connection is
 * suspended while its exchange waits for the handler; the library then neither polls it nor applies
 * the timeout.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time_units.h"
#include "http/internal.h"

#define CONNECTIONS_KEPT     128 /* more, while a run closes some and accepts others */
#define ADDRESS_CONNECTIONS  16  /* maximum number of connections of one address */
#define CONNECTION_MEMORY    32768
#define CONNECTION_TIMEOUT_S 2           /* of a connection that receives and sends nothing */
#define SEND_BUFFER          (128 << 10) /* the kernel doubles it */
#define PAUSE_FACTOR         10          /* pause after a run, in durations of that run */
#define PAUSE_MAX_MS         500         /* well below the timeout of a connection */

/* 1. Connections that make room */

static void http_on_connection(void *userdata, struct MHD_Connection *handle, void **socket_context,
                               enum MHD_ConnectionNotificationCode code) {
        struct http_server *http = userdata;

        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                *socket_context = http_connections_add(
                        &http->connections, handle,
                        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
        else
                http_connections_remove(*socket_context);
}

static struct http_connection *tracked_connection(struct MHD_Connection *handle) {
        return MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void release_body(struct http_exchange *exchange) {
        exchange->http->n_body_bytes -= exchange->n_body_reserved;
        exchange->n_body_reserved = 0;
        buf_deinit(&exchange->body);
}

/* The next run of the library notices it. */
static void disconnect(struct http_connection *connection) {
        connection->is_closing = true;
        if (connection->exchange)
                release_body(connection->exchange);
        shutdown(MHD_get_connection_info(connection->handle, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                 SHUT_RDWR);
}

/* Whether the peer has to send or to receive something: not the handler, and not the library. */
static bool waits_for_peer(const struct http_connection *connection) {
        const struct http_exchange *exchange = connection->exchange;

        return !exchange || (!exchange->is_suspended && !exchange->response);
}

static void disconnect_excess(struct http_server *http) {
        struct http_connection *connection;

        while (http_connections_n(&http->connections) > CONNECTIONS_KEPT &&
               (connection = http_connections_find(&http->connections, waits_for_peer)))
                disconnect(connection);
}

static bool has_body_to_send(const struct http_connection *connection) {
        return connection->exchange && connection->exchange->n_body_reserved > 0;
}

static void disconnect_slow_body(struct http_server *http) {
        struct http_connection *connection = http_connections_find(&http->connections, has_body_to_send);

        ASSERT(connection);
        disconnect(connection);
}

/* 2. Requests */

struct ambiguity {
        unsigned int n_lengths, n_hosts;
        bool has_blank; /* before a colon: the library takes it for a part of the name */
};

static enum MHD_Result look_for_ambiguity(void *userdata, enum MHD_ValueKind kind, const char *name,
                                          const char *value) {
        struct ambiguity *found = userdata;
        size_t length = strlen(name);

        (void)kind;
        (void)value;
        found->n_lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
        found->n_hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
        found->has_blank |= length > 0 && (name[length - 1] == ' ' || name[length - 1] == '\t');
        return MHD_YES;
}

/*
 * Refuse a request that a proxy may have read in another way: what follows its headers might be another
 * request of another client. Also close the connection. RFC 9112, 3.2, 5.1 and 6.3.
 */
static bool is_unambiguous(struct http_exchange *exchange) {
        struct ambiguity found = { 0 };

        MHD_get_connection_values(exchange->connection->handle, MHD_HEADER_KIND, look_for_ambiguity, &found);
        if (found.n_lengths <= 1 && found.n_hosts <= 1 && !found.has_blank)
                return true;
        http_add_header(exchange, MHD_HTTP_HEADER_CONNECTION, SLICE_LITERAL("close"));
        http_reply_error(exchange, HTTP_BAD_REQUEST, "a header is ambiguous");
        return false;
}

static bool serves_method(const struct http_route *route, const char *method) {
        return strcmp(route->method, method) == 0 || (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 &&
                                                      strcmp(route->method, MHD_HTTP_METHOD_GET) == 0);
}

/* Find the route of the request, or reply why there is none. */
static bool find_route(struct http_exchange *exchange, const char *method, const char *path) {
        const struct http_server *http = exchange->http;
        bool is_path = false;

        for (size_t i = 0; i < http->n_routes; i++)
                for (size_t j = 0; j < http->routes[i].n_routes; j++) {
                        const struct http_route *route = &http->routes[i].routes[j];

                        if (strcmp(route->path, path) != 0)
                                continue;
                        is_path = true;
                        if (!serves_method(route, method))
                                continue;
                        exchange->routes = &http->routes[i];
                        exchange->route = route;
                        return true;
                }
        if (is_path)
                http_reply_error(exchange, HTTP_METHOD_NOT_ALLOWED, "this page has another method");
        else
                http_reply_error(exchange, HTTP_NOT_FOUND, "no such page");
        return false;
}

static bool is_admitted(struct http_exchange *exchange) {
        const struct http_routes *routes = exchange->routes;

        return !routes->admit || routes->admit(routes->userdata, exchange);
}

/* Reserve memory for the body, or reply that there is none. The library has checked the syntax. */
static bool admit_body(struct http_exchange *exchange) {
        struct slice length = http_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
        struct http_server *http = exchange->http;
        uint64_t n_bytes = 0;

        if (http_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING).data) {
                http_reply_error(exchange, HTTP_LENGTH_REQUIRED, "a body needs a Content-Length");
                return false;
        }
        if (length.data && (parse_uint64(length, &n_bytes) < 0 || n_bytes > HTTP_BODY_MAX)) {
                http_reply_error(exchange, HTTP_TOO_LARGE, "a body has at most 1 MiB");
                return false;
        }
        if (n_bytes > 0 && strcmp(exchange->route->method, MHD_HTTP_METHOD_POST) != 0) {
                http_reply_error(exchange, HTTP_TOO_LARGE, "this page takes no body");
                return false;
        }
        while (http->n_body_bytes + n_bytes > HTTP_BODIES_MAX)
                disconnect_slow_body(http);
        exchange->n_body_reserved = n_bytes;
        http->n_body_bytes += n_bytes;
        return true;
}

static struct http_exchange *exchange_new(struct http_server *http, struct http_connection *connection) {
        struct http_exchange *exchange = calloc(1, sizeof(*exchange));

        if (!exchange)
                return NULL;
        *exchange = (struct http_exchange){
                .http = http,
                .connection = connection,
        };
        connection->exchange = exchange;
        return exchange;
}

static void exchange_free(struct http_exchange *exchange) {
        if (exchange->waiting.ended)
                exchange->waiting.ended(exchange->waiting.userdata);
        if (exchange->response)
                MHD_destroy_response(exchange->response);
        exchange->connection->exchange = NULL;
        exchange->http->n_reply_bytes -= exchange->n_reply_bytes;
        release_body(exchange);
        buf_deinit(&exchange->headers);
        free(exchange);
}

/* Queue the reply; without one, wait for it. */
static enum MHD_Result continue_exchange(struct http_exchange *exchange) {
        struct MHD_Response *response;
        enum MHD_Result result;

        if (exchange->is_broken)
                return MHD_NO;
        if (!exchange->response) {
                if (exchange->waiting.ended)
                        http_suspend(exchange);
                return MHD_YES;
        }
        response = take_ptr(&exchange->response);
        result = MHD_queue_response(exchange->connection->handle, exchange->status, response);
        MHD_destroy_response(response);
        return result;
}

/* Handle the request, which has arrived. */
static void handle_request(struct http_exchange *exchange) {
        exchange->is_complete = true;
        /* Again: a reload may have removed the user while the body arrived. */
        if (is_admitted(exchange))
                exchange->route->handle(exchange->routes->userdata, exchange);
        release_body(exchange);
}

static enum MHD_Result http_on_request(void *userdata, struct MHD_Connection *handle, const char *path,
                                       const char *method, const char *version, const char *upload,
                                       size_t *n_upload, void **state) {
        struct http_connection *connection = tracked_connection(handle);
        struct http_exchange *exchange = *state;

        (void)version;
        if (connection->is_closing)
                return MHD_NO;
        if (!exchange) {
                *state = exchange = exchange_new(userdata, connection);
                if (!exchange)
                        return MHD_NO;
                exchange->is_head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
                if (is_unambiguous(exchange) && find_route(exchange, method, path) && is_admitted(exchange))
                        admit_body(exchange);
        } else if (*n_upload > 0) {
                buf_append(&exchange->body, upload, *n_upload);
                *n_upload = 0;
                exchange->is_broken = buf_failed(&exchange->body);
        } else if (!exchange->is_complete && exchange->status == 0) {
                if (!http_connections_take_turn(&exchange->http->connections, connection,
                                                exchange->http->n_runs)) {
                        http_suspend(exchange);
                        http_resume(exchange); /* calls this function again in the next run */
                        return MHD_YES;
                }
                handle_request(exchange);
        }
        return continue_exchange(exchange);
}

static void http_on_completed(void *userdata, struct MHD_Connection *connection, void **state,
                              enum MHD_RequestTerminationCode code) {
        (void)userdata;
        (void)connection;
        (void)code;
        if (*state)
                exchange_free(*state);
        *state = NULL;
}

/* 3. The event loop */

static void http_on_timer(uv_timer_t *timer);

static void run_library(struct http_server *http) {
        uint64_t from_ns = uv_hrtime(), took_ns, pause_ms;

        http->has_resumed = false;
        http->n_runs++;
        MHD_run(http->daemon);
        disconnect_excess(http);

        took_ns = uv_hrtime() - from_ns;
        http->is_paused = true;
        uv_poll_stop(&http->poll);
        uv_update_time(http->timer.loop);
        pause_ms = PAUSE_FACTOR * took_ns / NS_PER_MS + 1;
        uv_timer_start(&http->timer, http_on_timer, pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS, 0);
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

        if (!http->is_paused || http->has_resumed) {
                run_library(http);
                return;
        }

        http->is_paused = false;
        uv_poll_start(&http->poll, UV_READABLE, http_on_ready);
        if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
                uv_timer_start(&http->timer, http_on_timer, timeout_ms, 0);
}

void http_suspend(struct http_exchange *exchange) {
        exchange->is_suspended = true;
        MHD_suspend_connection(exchange->connection->handle);
}

/* The epoll instance does not show that the library has to run for a resumed connection. */
void http_resume(struct http_exchange *exchange) {
        struct http_server *http = exchange->http;

        if (!exchange->is_suspended)
                return;
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->connection->handle);
        http->has_resumed = true;
        if (!http->is_paused && !uv_is_closing((uv_handle_t *)&http->timer))
                uv_timer_start(&http->timer, http_on_timer, 0, 0);
}

/* 4. The begin and the end */

/*
 * Create a socket that listens at the endpoint. Returns it, or -errno. Accepted sockets inherit its
 * options.
 */
static int listen_at(const struct endpoint *endpoint) {
        struct sockaddr_in6 address6 = { .sin6_family = AF_INET6, .sin6_port = htons(endpoint->port) };
        struct sockaddr_in address4 = { .sin_family = AF_INET, .sin_port = htons(endpoint->port) };
        bool is_ipv4 = inet_pton(AF_INET, endpoint->host, &address4.sin_addr) == 1;
        const struct sockaddr *address =
                is_ipv4 ? (struct sockaddr *)&address4 : (struct sockaddr *)&address6;
        socklen_t length = is_ipv4 ? sizeof(address4) : sizeof(address6);
        int fd, on = 1, send_buffer = SEND_BUFFER, r;

        if (!is_ipv4 && inet_pton(AF_INET6, endpoint->host, &address6.sin6_addr) != 1)
                return -EINVAL;

        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer)) < 0 ||
            bind(fd, address, length) < 0 || listen(fd, SOMAXCONN) < 0) {
                r = -errno;
                close(fd);
                return r;
        }
        return fd;
}

static uint16_t port_of(int fd) {
        struct sockaddr_in6 address = { 0 };
        socklen_t length = sizeof(address);

        /* The port is at the same place for both families. */
        return getsockname(fd, (struct sockaddr *)&address, &length) < 0 ? 0 : ntohs(address.sin6_port);
}

static struct MHD_Daemon *start_daemon(struct http_server *http, int fd, const struct http_tls *tls) {
        const struct MHD_OptionItem with_tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)tls->certificate },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)tls->key },
                { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-TLS1.0:-VERS-TLS1.1" },
                { MHD_OPTION_END, 0, NULL },
        };
        const struct MHD_OptionItem without_tls[] = { { MHD_OPTION_END, 0, NULL } };
        unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls->certificate ? MHD_USE_TLS : 0);

        return MHD_start_daemon(flags, 0, NULL, NULL, http_on_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
                                MHD_OPTION_CONNECTION_LIMIT, (unsigned int)HTTP_CONNECTIONS_MAX,
                                MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)ADDRESS_CONNECTIONS,
                                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)CONNECTION_TIMEOUT_S,
                                MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, NULL,
                                MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, http, MHD_OPTION_ARRAY,
                                tls->certificate ? with_tls : without_tls, MHD_OPTION_END);
}

/* End all exchanges. The library requires that no connection is suspended then. */
static void stop_daemon(struct http_server *http) {
        if (!http->daemon)
                return;
        for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
                if (http->connections.slots[i].exchange)
                        http_resume(http->connections.slots[i].exchange);
        MHD_stop_daemon(take_ptr(&http->daemon));
}

static void free_server(struct http_server *http) {
        stop_daemon(http);
        free(http);
}

CLEANUP_FUNCTION(cleanup_http, struct http_server *, free_server)

int http_open(struct http_server **ret_http, uv_loop_t *loop, const struct endpoint *endpoint,
              const struct http_tls *tls) {
        CLEANUP(cleanup_http) struct http_server *http = calloc(1, sizeof(*http));
        const union MHD_DaemonInfo *info;
        int fd;

        if (!http)
                return -ENOMEM;

        fd = listen_at(endpoint);
        if (fd < 0)
                return fd;

        http->port = port_of(fd);
        http->daemon = start_daemon(http, fd, tls);
        if (!http->daemon) {
                close(fd);
                return tls->certificate ? -EBADMSG : -ENOMEM;
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

void http_add_routes(struct http_server *http, const struct http_routes *routes) {
        ASSERT(http->n_routes < HTTP_ROUTES_MAX);
        http->routes[http->n_routes++] = *routes;
}

uint16_t http_port(const struct http_server *http) {
        return http->port;
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
        stop_daemon(http);
}
