/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libmosquitto owns the socket and closes it when it likes; a poll handle watches one connection's socket and
 * is given up with it. What the library needs to be told, and in which order, is written where it is done.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "io/link_state.h"
#include "io/resolve.h"

/* Reads in one wake-up while the user has a backlog. */
#define READS_AHEAD_MAX 8

/* Up to half of a pause off, so that those whom one broker lost do not come back at once. */
static uint64_t jitter(uint64_t pause_ms) {
        uint32_t random = 0;

        uv_random(NULL, NULL, &random, sizeof(random), 0, NULL);
        return pause_ms - random % (pause_ms / 2 + 1);
}

static void wait_and_retry(struct link *link) {
        bool was_up = link->state == LINK_UP && uv_now(link->loop) - link->up_since_ms > BACKOFF_LAST_MS;
        uint64_t pause_ms = was_up ? BACKOFF_FIRST_MS : link->backoff_ms;

        link->state = LINK_WAITING;
        link->backoff_ms = pause_ms * 2 < BACKOFF_LAST_MS ? pause_ms * 2 : BACKOFF_LAST_MS;
        uv_timer_start(&link->retry_timer, link_attempt, jitter(pause_ms), 0);
}

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

void link_drop_poll(struct link *link) {
        read_ahead_forget(&link->read_ahead);
        if (link->poll)
                uv_close((uv_handle_t *)take_ptr(&link->poll), poll_closed);
}

/* What a person is told: the library's own words where it has any. A broker that rejects us under TLS says little. */
static void explain(struct link *link, const char *reason) {
        size_t length = strlen(link->library_error);
        bool is_rejected = link->config.credentials.tls && link->state == LINK_CONNECTING &&
                           (link->is_socket_open || length > 0);

        if (length == 0)
                length = (size_t)snprintf(link->library_error, sizeof(link->library_error), "%s", reason);
        if (is_rejected && !strstr(link->library_error, "certificate") &&
            length < sizeof(link->library_error))
                snprintf(link->library_error + length, sizeof(link->library_error) - length,
                         "; does the broker accept our certificate?");
}

void link_lose(struct link *link, const char *reason) {
        link_drop_poll(link);
        if (link->state == LINK_WAITING)
                return;
        if (link->state == LINK_CLOSING) {
                link_finish_close(link);
                return;
        }

        link->n_subscribed = 0;
        explain(link, reason);
        link->config.callbacks.down(link->config.userdata, link->library_error);
        wait_and_retry(link);
}

/* TLS shakes hands inside the library's reading; until then CONNECT waits, and must not keep us awake. */
static bool is_shaking_hands(const struct link *link) {
        return link->config.credentials.tls && link->state == LINK_CONNECTING;
}

static bool has_peer(const struct link *link) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof(peer);

        return getpeername(mosquitto_socket(link->client), (struct sockaddr *)&peer, &length) == 0;
}

/*
 * libmosquitto 2.0 ignores errors of the TCP connection during the handshake. The first reading takes the error from the
 * socket. The second one finds the end of the stream, if the connection was reset; if it was refused, each reading succeeds
 * and the socket stays readable.
 */
static int read_tls(struct link *link) {
        bool is_lost = is_shaking_hands(link) && !has_peer(link);
        int r = mosquitto_loop_read(link->client, 1);

        if (r == MOSQ_ERR_SUCCESS && is_lost)
                r = mosquitto_loop_read(link->client, 1);
        return r == MOSQ_ERR_SUCCESS && is_lost ? MOSQ_ERR_CONN_REFUSED : r;
}

/*
 * The library leaves it at some packets, and no event tells of what was read ahead: so it is called until nothing is.
 * Under TLS it is another library that reads, and keeps what is left of a record.
 */
static int read_buffer(struct link *link) {
        int r;

        read_ahead_begin(&link->read_ahead, mosquitto_socket(link->client));
        do
                r = mosquitto_loop_read(link->client, 1);
        while (r == MOSQ_ERR_SUCCESS && read_ahead_has_bytes(&link->read_ahead));
        read_ahead_end();
        return r;
}

static int read_packets(struct link *link) {
        int n = 0;
        int r;

        if (link->config.credentials.tls)
                return read_tls(link);

        do
                r = read_buffer(link);
        while (r == MOSQ_ERR_SUCCESS && link->reading != LINK_READS &&
               read_ahead_may_have_more(&link->read_ahead) && ++n < READS_AHEAD_MAX);
        return r;
}

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct link *link = poll->data;
        bool reads = status < 0 || events & UV_READABLE || is_shaking_hands(link);
        int r = MOSQ_ERR_SUCCESS;

        if (status >= 0)
                link->is_socket_open = link->is_socket_open || has_peer(link);
        else
                link->watched = 0; /* libuv has stopped it */
        if (reads) {
                r = read_packets(link);
                link->config.callbacks.batch_end(link->config.userdata);
        }
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(link->client))
                r = mosquitto_loop_write(link->client, 1);
        if (r != MOSQ_ERR_SUCCESS)
                link_lose(link, mosquitto_strerror(r)); /* on_disconnect has mostly said it already */
        if (reads)
                link->config.callbacks.batch_written(link->config.userdata);
        link_update_poll(link);
}

static bool all_is_sent(const struct link *link) {
        return link->n_outstanding <= link->send_maximum && !mosquitto_want_write(link->client);
}

static bool wants_read(const struct link *link, bool wants_write) {
        switch (link->reading) {
        case LINK_WRITES_FIRST:
                return !wants_write;
        case LINK_READS_NOTHING:
                return link->state != LINK_UP;
        default:
                return true;
        }
}

/* To start anew what waits already would cost two system calls, each time. */
static void watch_for(struct link *link, int events) {
        if (events == link->watched)
                return;

        link->watched = events;
        if (events == 0)
                uv_poll_stop(link->poll);
        else
                uv_poll_start(link->poll, events, socket_ready);
}

void link_update_poll(struct link *link) {
        bool wants_write;
        int events = 0;

        if (!link->poll)
                return;
        if (link->state == LINK_CLOSING && all_is_sent(link)) {
                link_finish_close(link);
                return;
        }

        wants_write =
                mosquitto_want_write(link->client) && !(is_shaking_hands(link) && link->is_socket_open);
        if (wants_write)
                events |= UV_WRITABLE;
        if (wants_read(link, wants_write))
                events |= UV_READABLE;
        watch_for(link, events);
}

/* A connection has a new socket, often with an old one's number: so it gets a handle of its own. */
static int watch_socket(struct link *link) {
        CLEANUP(cleanup_free) uv_poll_t *poll = malloc(sizeof(*poll));
        int r;

        if (!poll)
                return -ENOMEM;

        r = uv_poll_init(link->loop, poll, mosquitto_socket(link->client));
        if (r < 0)
                return r;

        poll->data = link;
        link->watched = 0;
        link->poll = take_ptr(&poll);
        link_update_poll(link);
        return 0;
}

static void next_endpoint(struct link *link) {
        link->endpoint = (link->endpoint + 1) % link->config.n_endpoints;
        link->address = 0;
}

static void lose_name(struct link *link) {
        link_lose(link, "the name is not known");
        next_endpoint(link);
}

/* from: the local address to bind to, NULL: any. */
static void connect_to(struct link *link, const char *host, const char *from) {
        int r;

        r = credentials_set_password(&link->config.credentials, link->client);
        if (r < 0) {
                snprintf(link->library_error, sizeof(link->library_error), "the password file: %s",
                         strerror(-r));
                link_lose(link, NULL);
                return;
        }

        r = mosquitto_connect_bind_async(link->client, host, link_endpoint(link)->port,
                                         link->config.keepalive_s, from);
        if (r == MOSQ_ERR_SUCCESS && watch_socket(link) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r == MOSQ_ERR_SUCCESS)
                return;

        /* on a fast network TLS may have begun to shake hands already */
        link->is_socket_open = r == MOSQ_ERR_ERRNO && errno == EPROTO;
        link_lose(link, r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

/* Nothing is to be looked up: a thread that has once run makes each allocation dearer, for good. */
static bool is_address(const struct endpoint *endpoint) {
        unsigned char address[sizeof(struct in6_addr)];

        return endpoint->port == 0 || uv_inet_pton(AF_INET, endpoint->host, address) == 0 ||
               uv_inet_pton(AF_INET6, endpoint->host, address) == 0;
}

static void try_endpoint(struct link *link);

static void try_address(struct link *link, const struct addrinfo *addresses) {
        char text[RESOLVE_TEXT_SIZE];
        int r;

        r = resolve_address(addresses, link->address++, text);
        if (r == -ENOENT) {
                next_endpoint(link);
                try_endpoint(link);
        } else if (r < 0) {
                lose_name(link);
        } else if (link->config.credentials.tls) {
                connect_to(link, link_endpoint(link)->host, strchr(text, ':') ? "::" : "0.0.0.0");
        } else {
                connect_to(link, text, NULL);
        }
}

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
        struct link *link = request->data;

        link->is_resolving = false;
        if (link_is_closing(link))
                link_release(link);
        else if (status < 0)
                lose_name(link);
        else
                try_address(link, addresses);
        uv_freeaddrinfo(addresses);
}

/*
 * The library takes a name's first address for good once it connects without blocking: so we choose, each time the
 * next one, and after the last one the next endpoint. Under TLS it must see the name, which the certificate bears, and
 * asks the system itself, which has just found out: what we choose there is the kind, IPv4 or IPv6, of which it takes the
 * first address, for it passes over those that cannot be reached from where we bind it to.
 */
static void try_endpoint(struct link *link) {
        if (link->address > 0 && is_address(link_endpoint(link)))
                next_endpoint(link);
        if (is_address(link_endpoint(link))) {
                link->address = 1;
                connect_to(link, link_endpoint(link)->host, NULL);
                return;
        }

        link->resolution.data = link;
        link->is_resolving =
                resolve_start(link->loop, &link->resolution, link_endpoint(link)->host, resolved) == 0;
        if (!link->is_resolving)
                lose_name(link);
}

void link_attempt(uv_timer_t *timer) {
        struct link *link = timer->data;

        link->state = LINK_CONNECTING;
        link->is_socket_open = false;
        link->library_error[0] = '\0';
        link_listen_to_log(link, true);
        try_endpoint(link);
}

void link_misc(uv_timer_t *timer) {
        struct link *link = timer->data;

        if (link->state == LINK_CLOSING && uv_now(link->loop) >= link->close_until_ms) {
                link_finish_close(link);
                return;
        }
        mosquitto_loop_misc(link->client);
        link_update_poll(link);
}
