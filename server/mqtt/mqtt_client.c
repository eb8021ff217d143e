/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/mqtt_client.h"

#include <errno.h>
#include <fcntl.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mqtt/properties.h"
#include "mqtt/read_ahead.h"

#define MISC_INTERVAL_MS 1000 /* libmosquitto's timers have a resolution of 1 s */
#define LINGER_S         2

/* A wake-up receives no more bytes after this many calls of mosquitto_loop_read(). */
#define READS_MAX         64  /* in MQTT_READ_NORMAL */
#define READS_BACKLOG_MAX 512 /* in all other modes */

enum client_state {
        CLIENT_IDLE,
        CLIENT_CONNECTING, /* until mqtt_client_set_is_up() */
        CLIENT_UP,
};

struct mqtt_client {
        struct mqtt_client_config config;
        uv_loop_t *loop;
        struct mosquitto *library;
        enum client_state state;
        size_t endpoint;     /* index */
        size_t address;      /* index of the next address of the endpoint to try */
        size_t n_addresses;  /* result of the latest lookup of its name */
        bool is_socket_open; /* the socket was connected */
        bool has_had_event;  /* the socket has had an event; TLS: the handshake has begun */
        enum mqtt_read_mode read_mode;
        struct read_ahead read_ahead;
        uv_poll_t *poll; /* NULL while there is no socket */
        int poll_events; /* the events that poll watches; 0: stopped */
        uv_timer_t misc_timer;
        uv_getaddrinfo_t lookup;
        bool is_looking_up;
        bool is_in_wakeup; /* socket_ready() is running; it calls update_poll() at its end */
        char error[512];   /* latest log line of libmosquitto while connecting: TLS errors are only there */
        void (*closed)(void *userdata);
        int n_open_handles; /* while closing: the timer and a lookup that have not ended */
};

/* 1. End of the connection. */

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

/* Stop reading and watching the socket. */
static void drop_poll(struct mqtt_client *client) {
        read_ahead_end();
        if (client->poll)
                uv_close((uv_handle_t *)take_ptr(&client->poll), poll_closed);
}

/*
 * Prefer the text of libmosquitto, without its full stop, because the log continues the sentence. Add a hint about the
 * certificate under TLS: a broker does not report why it rejects one.
 */
static void complete_error(struct mqtt_client *client, const char *text) {
        size_t length = strlen(client->error);
        bool is_rejected = client->config.credentials.tls && client->state == CLIENT_CONNECTING &&
                           (client->is_socket_open || length > 0);

        if (length == 0) {
                snprintf(client->error, sizeof(client->error), "%s", text);
                length = strlen(client->error);
        }
        if (length > 0 && client->error[length - 1] == '.')
                client->error[--length] = '\0';
        if (is_rejected && !strstr(client->error, "certificate") && length < sizeof(client->error))
                snprintf(client->error + length, sizeof(client->error) - length,
                         "; does the broker accept our certificate?");
}

/* Call disconnected() once per connection or attempt, also if libmosquitto reports the end twice. */
static void report_disconnect(struct mqtt_client *client, enum mqtt_disconnect cause, int reason,
                              const char *text) {
        drop_poll(client);
        if (client->state == CLIENT_IDLE)
                return;

        if (cause == MQTT_DISCONNECTED && !client->is_socket_open)
                cause = MQTT_CONNECT_FAILED;
        complete_error(client, text);
        client->state = CLIENT_IDLE;
        client->config.callbacks.disconnected(client->config.callbacks.userdata, cause, reason,
                                              client->error);
}

static void next_endpoint(struct mqtt_client *client) {
        client->endpoint = (client->endpoint + 1) % client->config.n_endpoints;
        client->address = 0;
}

static void report_failed_lookup(struct mqtt_client *client, const char *text) {
        client->n_addresses = 0;
        report_disconnect(client, MQTT_LOOKUP_FAILED, MOSQ_ERR_EAI, text);
        if (!client->closed)
                next_endpoint(client);
}

/* 2. Callbacks of libmosquitto. */

static void on_connect(struct mosquitto *library, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        client->config.callbacks.connected(client->config.callbacks.userdata, reason, flags & 1, properties);
}

static void on_subscribe(struct mosquitto *library, void *userdata, int id, int n_granted,
                         const int *granted) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)id;
        client->config.callbacks.subscribed(client->config.callbacks.userdata, n_granted, granted);
}

static const char *reason_text(int reason) {
        if (reason == MQTT_RC_SESSION_TAKEN_OVER)
                return "another client has connected with our client id: two stores with one client id "
                       "disconnect each other; stop one of them";
        return reason < 0x80 ? mosquitto_strerror(reason) : mosquitto_reason_string(reason);
}

static void on_disconnect(struct mosquitto *library, void *userdata, int reason,
                          const mosquitto_property *properties) {
        (void)library;
        (void)properties;
        report_disconnect(userdata, MQTT_DISCONNECTED, reason, reason_text(reason));
}

static void on_message(struct mosquitto *library, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct mqtt_client *client = userdata;

        (void)library;
        if (mqtt_incoming_init(&incoming, message, properties, client->config.user_properties) == 0)
                client->config.messages.message(client->config.messages.userdata, &incoming.message);
        else
                client->config.messages.dropped(client->config.messages.userdata);

        /* mosquitto_loop_read() returns early if errno is EAGAIN */
        errno = 0;
}

static void on_publish(struct mosquitto *library, void *userdata, int id, int reason,
                       const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)properties;
        client->config.callbacks.acknowledged(client->config.callbacks.userdata, id, reason);
}

/* Set only while connecting: with a log callback libmosquitto formats a line for each packet. */
static void on_log(struct mosquitto *library, void *userdata, int level, const char *text) {
        struct mqtt_client *client = userdata;

        (void)library;
        if (level == MOSQ_LOG_ERR)
                snprintf(client->error, sizeof(client->error), "%s", text);
}

/* 3. The socket. */

/*
 * mosquitto_loop_read() performs the TLS handshake. Until its end CONNECT cannot be written: do not wait for the socket to
 * become writable. is_in_handshake() does not detect this end: under TLS it returns true until the connection is up.
 */
static bool is_in_handshake(const struct mqtt_client *client) {
        return client->config.credentials.tls && client->state == CLIENT_CONNECTING;
}

/* Under TLS the bytes are encrypted: they may be an incomplete record. */
static bool has_unread_bytes(const struct mqtt_client *client) {
        int n_bytes = 0;

        return !read_ahead_is_drained(&client->read_ahead) &&
               ioctl(mosquitto_socket(client->library), FIONREAD, &n_bytes) == 0 && n_bytes > 0;
}

/*
 * A call of mosquitto_loop_read() reads one packet, or as many packets as there are messages in flight. Repeat the call until
 * all bytes of the read-ahead are read. Under TLS, OpenSSL reads whole records: do not read ahead.
 */
static int read_received_packets(struct mqtt_client *client, int *n_reads) {
        int r;

        if (!client->config.credentials.tls)
                read_ahead_begin(&client->read_ahead, mosquitto_socket(client->library));
        do {
                r = mosquitto_loop_read(client->library, 1);
                (*n_reads)++;
        } while (r == MOSQ_ERR_SUCCESS && read_ahead_has_bytes());
        read_ahead_end();
        return r;
}

/* Read repeatedly, so that the caller sees the requests of all clients together and can serve them in turn. */
static int read_packets(struct mqtt_client *client) {
        int n_reads_max = client->read_mode == MQTT_READ_NORMAL ? READS_MAX : READS_BACKLOG_MAX;
        int n_reads = 0;
        int r;

        do
                r = read_received_packets(client, &n_reads);
        while (r == MOSQ_ERR_SUCCESS && client->state == CLIENT_UP && n_reads < n_reads_max &&
               has_unread_bytes(client));
        return r;
}

/*
 * The socket has an event but no peer: the connection was refused or reset. libmosquitto 2.0 does not report that under TLS.
 * Its handshake may already have cleared SO_ERROR; then the cause is not known.
 */
static void report_unconnected(struct mqtt_client *client) {
        int error = 0;
        socklen_t size = sizeof(error);

        getsockopt(mosquitto_socket(client->library), SOL_SOCKET, SO_ERROR, &error, &size);
        report_disconnect(client, MQTT_CONNECT_FAILED, MOSQ_ERR_ERRNO,
                          error ? strerror(error)
                                : "the connection was refused, or closed during the TLS handshake");
}

/* Returns a result of libmosquitto. */
static int transfer(struct mqtt_client *client, bool reads) {
        int r = MOSQ_ERR_SUCCESS;

        if (reads) {
                r = read_packets(client);
                if (client->config.messages.packets_read)
                        client->config.messages.packets_read(client->config.messages.userdata);
        }
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(client->library))
                r = mosquitto_loop_write(client->library, 1);
        return r;
}

static void update_poll(struct mqtt_client *client);

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct mqtt_client *client = poll->data;
        const struct mqtt_client_callbacks *callbacks = &client->config.callbacks;
        bool reads = status < 0 || events & UV_READABLE || is_in_handshake(client);
        int r;

        client->is_in_wakeup = true;
        client->has_had_event = true;
        client->is_socket_open = client->is_socket_open || mqtt_client_is_socket_connected(client);
        if (status < 0)
                client->poll_events = 0; /* libuv has stopped it */
        r = transfer(client, reads);
        if (r != MOSQ_ERR_SUCCESS) /* usually on_disconnect() has reported it already */
                report_disconnect(client, MQTT_DISCONNECTED, r, mosquitto_strerror(r));
        else if (!client->is_socket_open)
                report_unconnected(client);
        if (callbacks->packets_written)
                callbacks->packets_written(callbacks->userdata, reads);
        client->is_in_wakeup = false;
        update_poll(client);
}

static bool wants_read(const struct mqtt_client *client, bool wants_write) {
        switch (client->read_mode) {
        case MQTT_READ_AFTER_WRITES:
                return !wants_write;
        case MQTT_READ_PAUSED:
                return client->state != CLIENT_UP;
        default:
                return true;
        }
}

/* Starting poll again with the same events would cost two system calls. */
static void watch_for(struct mqtt_client *client, int events) {
        if (events == client->poll_events)
                return;

        client->poll_events = events;
        if (events == 0)
                uv_poll_stop(client->poll);
        else
                uv_poll_start(client->poll, events, socket_ready);
}

/* Watch the socket for the events that libmosquitto waits for. */
static void update_poll(struct mqtt_client *client) {
        bool wants_write;
        int events = 0;

        if (!client->poll)
                return;

        wants_write =
                mosquitto_want_write(client->library) && !(is_in_handshake(client) && client->has_had_event);
        if (wants_write)
                events |= UV_WRITABLE;
        if (wants_read(client, wants_write))
                events |= UV_READABLE;
        watch_for(client, events);
}

/* Create a new handle for each socket: a new socket often gets the file descriptor of the previous one. */
static int watch_socket(struct mqtt_client *client) {
        CLEANUP(cleanup_free) uv_poll_t *poll = malloc(sizeof(*poll));
        int r;

        if (!poll)
                return -ENOMEM;

        r = uv_poll_init(client->loop, poll, mosquitto_socket(client->library));
        if (r < 0)
                return r;

        poll->data = client;
        client->poll_events = 0;
        client->poll = take_ptr(&poll);
        update_poll(client);
        return 0;
}

/* 4. Connecting. */

/* from: the local address to bind to, NULL: any. */
static void connect_to(struct mqtt_client *client, const char *host, const char *from) {
        struct credentials_fault fault;
        int r;

        if (credentials_check_tls_files(&client->config.credentials, &fault) < 0 ||
            credentials_set_password(&client->config.credentials, client->library, &fault) < 0) {
                report_disconnect(client, MQTT_CONNECT_FAILED, MOSQ_ERR_ERRNO, fault.text);
                return;
        }

        r = mosquitto_connect_bind_async(client->library, host, mqtt_client_endpoint(client)->port,
                                         client->config.keepalive_s, from);
        if (r == MOSQ_ERR_SUCCESS && watch_socket(client) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r == MOSQ_ERR_SUCCESS) {
                client->is_socket_open = mqtt_client_is_socket_connected(client);
                return;
        }

        /* on a fast network the TLS handshake may have begun already */
        client->is_socket_open = r == MOSQ_ERR_TLS || (r == MOSQ_ERR_ERRNO && errno == EPROTO);
        report_disconnect(client, MQTT_CONNECT_FAILED, client->is_socket_open ? MOSQ_ERR_TLS : r,
                          r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

/* A lookup starts a thread, and with a second thread each allocation takes longer. */
static bool needs_no_lookup(const struct endpoint *endpoint) {
        unsigned char address[sizeof(struct in6_addr)];

        return endpoint->port == 0 || uv_inet_pton(AF_INET, endpoint->host, address) == 0 ||
               uv_inet_pton(AF_INET6, endpoint->host, address) == 0;
}

static void try_address(struct mqtt_client *client, const struct addrinfo *addresses) {
        const struct addrinfo *address = addresses;
        char text[NI_MAXHOST];

        client->n_addresses = 0;
        for (const struct addrinfo *at = addresses; at; at = at->ai_next)
                if (client->n_addresses++ == client->address)
                        address = at;
        if (client->address >= client->n_addresses)
                client->address = 0; /* the name has fewer addresses than before */
        client->address++;

        if (!address || getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
                                    NI_NUMERICHOST) != 0)
                report_failed_lookup(client, "the name is not known");
        else if (client->config.credentials.tls)
                connect_to(client, mqtt_client_endpoint(client)->host, strchr(text, ':') ? "::" : "0.0.0.0");
        else
                connect_to(client, text, NULL);
}

static void release_client(struct mqtt_client *client);

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
        struct mqtt_client *client = request->data;

        client->is_looking_up = false;
        if (client->closed)
                release_client(client);
        else if (status < 0)
                report_failed_lookup(client, "the name is not known");
        else
                try_address(client, addresses);
        uv_freeaddrinfo(addresses);
}

static void resolve(struct mqtt_client *client) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

        client->lookup.data = client;
        client->is_looking_up = uv_getaddrinfo(client->loop, &client->lookup, resolved,
                                               mqtt_client_endpoint(client)->host, NULL, &hints) == 0;
        if (!client->is_looking_up)
                report_failed_lookup(client, "the name is not known");
}

/*
 * The non-blocking connect of libmosquitto uses only the first address of a name. So the client resolves the name and passes
 * one address per attempt. Under TLS the client must pass the name, because libmosquitto verifies the certificate with it.
 * libmosquitto then resolves the name again. The client selects the address family by binding to a local address:
 * libmosquitto skips addresses of the other family.
 */
void mqtt_client_connect(struct mqtt_client *client) {
        client->state = CLIENT_CONNECTING;
        client->is_socket_open = false;
        client->has_had_event = false;
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, on_log);

        if (client->address > 0 && !mqtt_client_has_untried_address(client))
                next_endpoint(client);
        if (needs_no_lookup(mqtt_client_endpoint(client))) {
                client->n_addresses = 1;
                client->address = 1;
                connect_to(client, mqtt_client_endpoint(client)->host, NULL);
        } else {
                resolve(client);
        }
}

bool mqtt_client_has_untried_address(const struct mqtt_client *client) {
        return client->address < client->n_addresses;
}

void mqtt_client_set_is_up(struct mqtt_client *client) {
        client->state = CLIENT_UP;
        client->address--;
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, NULL);
}

bool mqtt_client_is_socket_connected(const struct mqtt_client *client) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);

        return getpeername(mosquitto_socket(client->library), (struct sockaddr *)&peer, &size) == 0;
}

const struct endpoint *mqtt_client_endpoint(const struct mqtt_client *client) {
        return &client->config.endpoints[client->endpoint];
}

/* 5. Creating and closing. */

static void free_client(struct mqtt_client *client) {
        if (client->library)
                mosquitto_destroy(client->library);
        free(client);
        mosquitto_lib_cleanup();
}

static void cleanup_client(struct mqtt_client **client) {
        if (*client)
                free_client(*client);
}

static void cleanup_library(struct mosquitto **library) {
        if (*library)
                mosquitto_destroy(*library);
}

static int set_options(struct mosquitto *library, const struct mqtt_client_config *config) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;
        int r;

        r = mosquitto_int_option(library, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_TCP_NODELAY, 1);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_RECEIVE_MAXIMUM, config->receive_maximum);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_int_option(library, MOSQ_OPT_SEND_MAXIMUM, MQTT_SEND_MAXIMUM);
        if (r != MOSQ_ERR_SUCCESS || config->session_expiry_s == 0)
                return mqtt_error(r);

        /*
         * Only the blocking call accepts properties for CONNECT. Without a host the call stores the properties and
         * returns MOSQ_ERR_INVAL. Every later attempt sends them.
         */
        r = mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL,
                                         config->session_expiry_s);
        if (r == MOSQ_ERR_SUCCESS)
                r = mosquitto_connect_bind_v5(library, NULL, 0, 0, NULL, properties);
        return r == MOSQ_ERR_INVAL ? 0 : mqtt_error(r);
}

int mqtt_library_new(struct mosquitto **ret_library, const struct mqtt_client_config *config,
                     void *userdata) {
        CLEANUP(cleanup_library) struct mosquitto *library = NULL;
        int r;

        library = mosquitto_new(config->client_id, config->session_expiry_s == 0, userdata);
        if (!library)
                return -errno;

        r = set_options(library, config);
        if (r == 0)
                r = credentials_set_tls(&config->credentials, library);
        if (r < 0)
                return r;

        *ret_library = take_ptr(&library);
        return 0;
}

static void on_misc(uv_timer_t *timer) {
        struct mqtt_client *client = timer->data;

        mosquitto_loop_misc(client->library);
        update_poll(client);
}

static int start_library(struct mqtt_client *client) {
        int r;

        r = mqtt_library_new(&client->library, &client->config, client);
        if (r < 0)
                return r;

        mosquitto_connect_v5_callback_set(client->library, on_connect);
        mosquitto_subscribe_callback_set(client->library, on_subscribe);
        mosquitto_disconnect_v5_callback_set(client->library, on_disconnect);
        mosquitto_message_v5_callback_set(client->library, on_message);
        mosquitto_publish_v5_callback_set(client->library, on_publish);
        return 0;
}

int mqtt_client_new(struct mqtt_client **ret_client, uv_loop_t *loop,
                    const struct mqtt_client_config *config) {
        CLEANUP(cleanup_client) struct mqtt_client *client = NULL;
        int r;

        mosquitto_lib_init();
        client = calloc(1, sizeof(*client));
        if (!client) {
                mosquitto_lib_cleanup();
                return -ENOMEM;
        }

        client->config = *config;
        client->loop = loop;
        r = start_library(client);
        if (r < 0)
                return r;

        uv_timer_init(loop, &client->misc_timer);
        client->misc_timer.data = client;
        uv_timer_start(&client->misc_timer, on_misc, MISC_INTERVAL_MS, MISC_INTERVAL_MS);
        *ret_client = take_ptr(&client);
        return 0;
}

static void release_client(struct mqtt_client *client) {
        void (*closed)(void *userdata) = client->closed;
        void *userdata = client->config.callbacks.userdata;

        if (--client->n_open_handles > 0)
                return;
        free_client(client);
        closed(userdata);
}

static void timer_closed(uv_handle_t *handle) {
        release_client(handle->data);
}

void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata)) {
        client->closed = closed;
        client->state = CLIENT_IDLE; /* later events of libmosquitto are not passed on */
        drop_poll(client);
        client->n_open_handles = 1 + client->is_looking_up;
        if (client->is_looking_up)
                uv_cancel((uv_req_t *)&client->lookup);
        uv_close((uv_handle_t *)&client->misc_timer, timer_closed);
}

void mqtt_client_disconnect(struct mqtt_client *client, bool ends_session) {
        CLEANUP(mosquitto_property_free_all) mosquitto_property *properties = NULL;

        if (ends_session)
                mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, 0);
        client->state = CLIENT_IDLE;
        mosquitto_disconnect_v5(client->library, 0, properties);
}

/*
 * Closing a socket with unread bytes resets the connection, and the broker may lose packets that it has not read yet. So
 * keep a duplicate of the socket open until the broker closes the connection. Packets that the broker sends meanwhile are
 * not acknowledged; the broker sends them again when the session is resumed.
 */
static void disconnect_gracefully(struct mqtt_client *client, bool ends_session) {
        struct timeval timeout = { .tv_sec = LINGER_S };
        int fd = dup(mosquitto_socket(client->library));
        char rest[4096];

        mqtt_client_disconnect(client, ends_session);
        if (fd < 0)
                return;

        shutdown(fd, SHUT_WR);
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
            fcntl(fd, F_SETFL, 0) == 0) /* the sockets of libmosquitto are non-blocking */
                while (recv(fd, rest, sizeof(rest), 0) > 0)
                        ;
        close(fd);
}

void mqtt_client_disconnect_gracefully(struct mqtt_client *client) {
        disconnect_gracefully(client, false);
}

int mqtt_client_change_id(struct mqtt_client *client, const char *client_id) {
        struct mosquitto *former = client->library;
        const char *former_id = client->config.client_id;
        int r;

        disconnect_gracefully(client, true);
        drop_poll(client);
        client->config.client_id = client_id;
        r = start_library(client);
        if (r < 0)
                client->config.client_id = former_id;
        else
                mosquitto_destroy(former);
        return r;
}

void mqtt_client_disconnect_in_callback(struct mqtt_client *client) {
        mosquitto_disconnect_v5(client->library, 0, NULL);

        /* end mosquitto_loop_read(): another packet would make it close the socket before DISCONNECT is written */
        read_ahead_end();
        errno = EAGAIN;
}

void mqtt_client_subscribe(struct mqtt_client *client, const char *const *filters, int n_filters, int qos,
                           int options) {
        mosquitto_subscribe_multiple(client->library, NULL, n_filters, (char *const *)filters, qos, options,
                                     NULL);
}

int mqtt_client_publish(struct mqtt_client *client, const char *topic, struct slice payload,
                        const mosquitto_property *properties, int *ret_id) {
        int r = MOSQ_ERR_PAYLOAD_SIZE;

        if (payload.length <= MQTT_MAX_PAYLOAD)
                r = mosquitto_publish_v5(client->library, ret_id, topic, (int)payload.length, payload.data,
                                         1, false, properties);
        if (!client->is_in_wakeup)
                update_poll(client);
        return r;
}

bool mqtt_client_wants_write(const struct mqtt_client *client) {
        return mosquitto_want_write(client->library);
}

void mqtt_client_set_read_mode(struct mqtt_client *client, enum mqtt_read_mode read_mode) {
        if (client->read_mode == read_mode)
                return;

        client->read_mode = read_mode;
        update_poll(client);
}
