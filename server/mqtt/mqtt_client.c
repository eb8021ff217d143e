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

#define MISC_INTERVAL_MS 1000 /* libmosquitto's timers have a resolution of 1 s */
#define LINGER_S         2

/* Calls of mosquitto_loop_read() in one wake-up, usually and while the user has a backlog. */
#define READS_MAX       64
#define READS_AHEAD_MAX 512

enum client_state {
        CLIENT_IDLE,
        CLIENT_CONNECTING, /* until mqtt_client_set_up() */
        CLIENT_UP,
};

struct mqtt_client {
        struct mqtt_client_config config;
        uv_loop_t *loop;
        struct mosquitto *library;
        enum client_state state;
        size_t endpoint;     /* index */
        size_t address;      /* index of the next of the endpoint's addresses */
        size_t n_addresses;  /* when its name was last looked up */
        bool is_socket_open; /* the socket was connected */
        bool has_woken;      /* the socket has had an event; TLS: the handshake has begun */
        enum mqtt_reading reading;
        uv_poll_t *poll; /* NULL while there is no socket */
        int watched;     /* the events of poll; 0: stopped */
        uv_timer_t misc_timer;
        uv_getaddrinfo_t resolution;
        bool is_resolving;
        bool is_awake;   /* in socket_ready(), which updates poll at its end */
        char error[256]; /* latest log line of libmosquitto while connecting: TLS errors are only there */
        void (*closed)(void *userdata);
        int n_open; /* while closing: the timer and a lookup that have not ended */
};

/* 1. End of the connection. */

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

/* Stop watching the socket. */
static void drop_poll(struct mqtt_client *client) {
        if (client->poll)
                uv_close((uv_handle_t *)take_ptr(&client->poll), poll_closed);
}

/* Prefer the text of libmosquitto. Under TLS a broker does not report why it rejects a certificate. */
static void explain(struct mqtt_client *client, const char *text) {
        size_t length = strlen(client->error);
        bool is_rejected = client->config.credentials.tls && client->state == CLIENT_CONNECTING &&
                           (client->is_socket_open || length > 0);

        if (length == 0)
                length = (size_t)snprintf(client->error, sizeof(client->error), "%s", text);
        if (is_rejected && !strstr(client->error, "certificate") && length < sizeof(client->error))
                snprintf(client->error + length, sizeof(client->error) - length,
                         "; does the broker accept our certificate?");
}

/* Call lost() once per connection or attempt, also if libmosquitto reports its end again. */
static void lose(struct mqtt_client *client, enum mqtt_loss loss, int reason, const char *text) {
        drop_poll(client);
        if (client->state == CLIENT_IDLE)
                return;

        if (loss == MQTT_LOST_CONNECTION && !client->is_socket_open)
                loss = MQTT_LOST_CONNECT;
        explain(client, text);
        client->state = CLIENT_IDLE;
        client->config.callbacks.lost(client->config.userdata, loss, reason, client->error);
}

static void next_endpoint(struct mqtt_client *client) {
        client->endpoint = (client->endpoint + 1) % client->config.n_endpoints;
        client->address = 0;
}

static void lose_name(struct mqtt_client *client, const char *text) {
        client->n_addresses = 0;
        lose(client, MQTT_LOST_NAME, MOSQ_ERR_EAI, text);
        if (!client->closed)
                next_endpoint(client);
}

/* 2. Callbacks of libmosquitto. */

static void on_connect(struct mosquitto *library, void *userdata, int reason, int flags,
                       const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        client->config.callbacks.connected(client->config.userdata, reason, flags & 1, properties);
}

static void on_subscribe(struct mosquitto *library, void *userdata, int id, int n_granted,
                         const int *granted) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)id;
        client->config.callbacks.subscribed(client->config.userdata, n_granted, granted);
}

static const char *reason_text(int reason) {
        if (reason == MQTT_RC_SESSION_TAKEN_OVER)
                return "another client has connected with our client id: two statestored throw each other "
                       "out";
        return reason < 0x80 ? mosquitto_strerror(reason) : mosquitto_reason_string(reason);
}

static void on_disconnect(struct mosquitto *library, void *userdata, int reason,
                          const mosquitto_property *properties) {
        (void)library;
        (void)properties;
        lose(userdata, MQTT_LOST_CONNECTION, reason, reason_text(reason));
}

static void on_message(struct mosquitto *library, void *userdata, const struct mosquitto_message *message,
                       const mosquitto_property *properties) {
        CLEANUP(mqtt_incoming_deinit) struct mqtt_incoming incoming;
        struct mqtt_client *client = userdata;

        (void)library;
        if (mqtt_incoming_init(&incoming, message, properties, client->config.user_properties) == 0)
                client->config.callbacks.message(client->config.userdata, &incoming.message);
        else
                client->config.callbacks.dropped(client->config.userdata);

        /* mosquitto_loop_read() returns early if errno is EAGAIN */
        errno = 0;
}

static void on_publish(struct mosquitto *library, void *userdata, int id, int reason,
                       const mosquitto_property *properties) {
        struct mqtt_client *client = userdata;

        (void)library;
        (void)properties;
        client->config.callbacks.acknowledged(client->config.userdata, id, reason);
}

/* Set only while connecting: with a log callback libmosquitto formats a line for each packet. */
static void on_log(struct mosquitto *library, void *userdata, int level, const char *text) {
        struct mqtt_client *client = userdata;

        (void)library;
        if (level == MOSQ_LOG_ERR)
                snprintf(client->error, sizeof(client->error), "%s", text);
}

/* 3. The socket. */

/* mosquitto_loop_read() does the TLS handshake. CONNECT waits for it and must not cause wake-ups. */
static bool is_shaking_hands(const struct mqtt_client *client) {
        return client->config.credentials.tls && client->state == CLIENT_CONNECTING;
}

/* Bytes of TLS records count too. */
static bool has_unread_bytes(const struct mqtt_client *client) {
        int n_bytes = 0;

        return ioctl(mosquitto_socket(client->library), FIONREAD, &n_bytes) == 0 && n_bytes > 0;
}

/*
 * A call of mosquitto_loop_read() reads one packet, or as many packets as there are messages in flight. Repeat the call, so
 * that the user sees the requests of all clients together and can serve them in turn.
 */
static int read_packets(struct mqtt_client *client) {
        int n_reads_max = client->reading == MQTT_READS ? READS_MAX : READS_AHEAD_MAX;
        int n_reads = 0;
        int r;

        do
                r = mosquitto_loop_read(client->library, 1);
        while (r == MOSQ_ERR_SUCCESS && client->state == CLIENT_UP && ++n_reads < n_reads_max &&
               has_unread_bytes(client));
        return r;
}

/*
 * The socket has an event but no peer: the connection was refused or reset. libmosquitto 2.0 does not report that under TLS,
 * and its handshake may have taken the error from the socket.
 */
static void lose_unconnected(struct mqtt_client *client) {
        int error = 0;
        socklen_t size = sizeof(error);

        getsockopt(mosquitto_socket(client->library), SOL_SOCKET, SO_ERROR, &error, &size);
        lose(client, MQTT_LOST_CONNECT, MOSQ_ERR_ERRNO, strerror(error ? error : ECONNREFUSED));
}

/* Returns a result of libmosquitto. */
static int transfer(struct mqtt_client *client, bool reads) {
        int r = MOSQ_ERR_SUCCESS;

        if (reads) {
                r = read_packets(client);
                if (client->config.callbacks.batch_end)
                        client->config.callbacks.batch_end(client->config.userdata);
        }
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(client->library))
                r = mosquitto_loop_write(client->library, 1);
        return r;
}

static void update_poll(struct mqtt_client *client);

static void socket_ready(uv_poll_t *poll, int status, int events) {
        struct mqtt_client *client = poll->data;
        const struct mqtt_client_callbacks *callbacks = &client->config.callbacks;
        bool reads = status < 0 || events & UV_READABLE || is_shaking_hands(client);
        int r;

        client->is_awake = true;
        client->has_woken = true;
        client->is_socket_open = client->is_socket_open || mqtt_client_is_reached(client);
        if (status < 0)
                client->watched = 0; /* libuv has stopped it */
        r = transfer(client, reads);
        if (r != MOSQ_ERR_SUCCESS) /* usually on_disconnect() has reported it already */
                lose(client, MQTT_LOST_CONNECTION, r, mosquitto_strerror(r));
        else if (!client->is_socket_open)
                lose_unconnected(client);
        if (callbacks->batch_written)
                callbacks->batch_written(client->config.userdata, reads);
        client->is_awake = false;
        update_poll(client);
}

static bool wants_read(const struct mqtt_client *client, bool wants_write) {
        switch (client->reading) {
        case MQTT_WRITES_FIRST:
                return !wants_write;
        case MQTT_READS_NOTHING:
                return client->state != CLIENT_UP;
        default:
                return true;
        }
}

/* Starting poll again with the same events would cost two system calls. */
static void watch_for(struct mqtt_client *client, int events) {
        if (events == client->watched)
                return;

        client->watched = events;
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
                mosquitto_want_write(client->library) && !(is_shaking_hands(client) && client->has_woken);
        if (wants_write)
                events |= UV_WRITABLE;
        if (wants_read(client, wants_write))
                events |= UV_READABLE;
        watch_for(client, events);
}

/* A new connection often reuses the number of the old socket, so it needs a new handle. */
static int watch_socket(struct mqtt_client *client) {
        CLEANUP(cleanup_free) uv_poll_t *poll = malloc(sizeof(*poll));
        int r;

        if (!poll)
                return -ENOMEM;

        r = uv_poll_init(client->loop, poll, mosquitto_socket(client->library));
        if (r < 0)
                return r;

        poll->data = client;
        client->watched = 0;
        client->poll = take_ptr(&poll);
        update_poll(client);
        return 0;
}

/* 4. Connecting. */

/* from: the local address to bind to, NULL: any. */
static void connect_to(struct mqtt_client *client, const char *host, const char *from) {
        int r;

        r = credentials_set_password(&client->config.credentials, client->library);
        if (r < 0) {
                snprintf(client->error, sizeof(client->error), "the password file: %s", strerror(-r));
                lose(client, MQTT_LOST_CONNECT, MOSQ_ERR_ERRNO, NULL);
                return;
        }

        r = mosquitto_connect_bind_async(client->library, host, mqtt_client_endpoint(client)->port,
                                         client->config.keepalive_s, from);
        if (r == MOSQ_ERR_SUCCESS && watch_socket(client) < 0)
                r = MOSQ_ERR_NOMEM;
        if (r == MOSQ_ERR_SUCCESS) {
                client->is_socket_open = mqtt_client_is_reached(client);
                return;
        }

        /* on a fast network TLS may have begun to shake hands already */
        client->is_socket_open = r == MOSQ_ERR_TLS || (r == MOSQ_ERR_ERRNO && errno == EPROTO);
        lose(client, MQTT_LOST_CONNECT, client->is_socket_open ? MOSQ_ERR_TLS : r,
             r == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(r));
}

/* An address needs no lookup: once a process has had a second thread, each allocation costs more. */
static bool is_address(const struct endpoint *endpoint) {
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
                client->address = 0; /* there are fewer than there were */
        client->address++;

        if (!address || getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
                                    NI_NUMERICHOST) != 0)
                lose_name(client, "the name is not known");
        else if (client->config.credentials.tls)
                connect_to(client, mqtt_client_endpoint(client)->host, strchr(text, ':') ? "::" : "0.0.0.0");
        else
                connect_to(client, text, NULL);
}

static void release(struct mqtt_client *client);

static void resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses) {
        struct mqtt_client *client = request->data;

        client->is_resolving = false;
        if (client->closed)
                release(client);
        else if (status < 0)
                lose_name(client, "the name is not known");
        else
                try_address(client, addresses);
        uv_freeaddrinfo(addresses);
}

static void resolve(struct mqtt_client *client) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

        client->resolution.data = client;
        client->is_resolving = uv_getaddrinfo(client->loop, &client->resolution, resolved,
                                              mqtt_client_endpoint(client)->host, NULL, &hints) == 0;
        if (!client->is_resolving)
                lose_name(client, "the name is not known");
}

/*
 * When it connects without blocking, libmosquitto uses only the first address of a name. So the client resolves the name
 * and passes one address per attempt. Under TLS libmosquitto needs the name, to verify the certificate, and resolves it
 * again. The client then selects the address family: libmosquitto skips addresses that do not match the local address to
 * which the client binds it.
 */
void mqtt_client_connect(struct mqtt_client *client) {
        client->state = CLIENT_CONNECTING;
        client->is_socket_open = false;
        client->has_woken = false;
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, on_log);

        if (client->address > 0 && !mqtt_client_has_address(client))
                next_endpoint(client);
        if (is_address(mqtt_client_endpoint(client))) {
                client->n_addresses = 1;
                client->address = 1;
                connect_to(client, mqtt_client_endpoint(client)->host, NULL);
        } else {
                resolve(client);
        }
}

bool mqtt_client_has_address(const struct mqtt_client *client) {
        return client->address < client->n_addresses;
}

void mqtt_client_set_up(struct mqtt_client *client) {
        client->state = CLIENT_UP;
        client->address--;
        client->error[0] = '\0';
        mosquitto_log_callback_set(client->library, NULL);
}

bool mqtt_client_is_reached(const struct mqtt_client *client) {
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
         * Only the blocking call takes properties for CONNECT. Without a host it stores them and fails; every later
         * attempt sends them.
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

static void release(struct mqtt_client *client) {
        void (*closed)(void *userdata) = client->closed;
        void *userdata = client->config.userdata;

        if (--client->n_open > 0)
                return;
        free_client(client);
        closed(userdata);
}

static void timer_closed(uv_handle_t *handle) {
        release(handle->data);
}

void mqtt_client_close(struct mqtt_client *client, void (*closed)(void *userdata)) {
        client->closed = closed;
        client->state = CLIENT_IDLE; /* later events of libmosquitto are not passed on */
        drop_poll(client);
        client->n_open = 1 + client->is_resolving;
        if (client->is_resolving)
                uv_cancel((uv_req_t *)&client->resolution);
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

void mqtt_client_refuse(struct mqtt_client *client) {
        mosquitto_disconnect_v5(client->library, 0, NULL);

        /* end the library's reading: it closes the socket on a packet after DISCONNECT, before it writes DISCONNECT */
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
        if (!client->is_awake)
                update_poll(client);
        return r;
}

bool mqtt_client_wants_write(const struct mqtt_client *client) {
        return mosquitto_want_write(client->library);
}

void mqtt_client_set_reading(struct mqtt_client *client, enum mqtt_reading reading) {
        if (client->reading == reading)
                return;

        client->reading = reading;
        update_poll(client);
}
