/* SPDX-License-Identifier: Apache-2.0 */

/* The events of the socket: reading and writing packets, and the end of the connection. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "mqtt/internal.h"

/* A wake-up receives no more bytes after this many calls of mosquitto_loop_read(). */
#define READS_MAX         64  /* in MQTT_READ_NORMAL */
#define READS_BACKLOG_MAX 512 /* in all other modes */

/* 1. The end of the connection. */

static void poll_closed(uv_handle_t *handle) {
        free(handle);
}

void client_drop_poll(struct mqtt_client *client) {
        if (client->poll)
                uv_close((uv_handle_t *)take_ptr(&client->poll), poll_closed);
}

/*
 * Advice after an error of the TLS handshake. A broker that rejects a client may close the
 * connection without a reason.
 */
static const char *tls_advice(const struct credentials *credentials, const char *error) {
        if (strstr(error, "unexpected eof") || strstr(error, "wrong version number"))
                return "; perhaps the broker does not use TLS on this port: TLS often has port 8883";
        if (strstr(error, "PEM lib") || strstr(error, "key values mismatch"))
                return "; check that --tls-certificate and --tls-key are a certificate and its private key";
        if (!strstr(error, "certificate verify failed"))
                return credentials->tls_certificate
                               ? "; does the broker use TLS on this port, and accept --tls-certificate?"
                               : "; does the broker use TLS on this port, and require --tls-certificate?";
        return credentials->tls_ca_file
                       ? "; check the broker's certificate, its name and --tls-ca-file"
                       : "; check the broker's certificate and its name, or use --tls-ca-file";
}

/*
 * Prefer the text of libmosquitto, without its full stop, because the log continues the sentence.
 * If the TLS handshake may have failed, add advice.
 */
static void complete_error(struct mqtt_client *client, const char *text) {
        size_t length = strlen(client->error);
        bool was_handshake = client->config.credentials.tls && client->state == CLIENT_CONNECTING &&
                             (client->is_socket_open || length > 0);

        if (length == 0) {
                snprintf(client->error, sizeof(client->error), "%s", text);
                length = strlen(client->error);
        }
        if (length > 0 && client->error[length - 1] == '.')
                client->error[--length] = '\0';
        if (!client->config.credentials.tls && client->state == CLIENT_CONNECTING &&
            client->is_socket_open && !client->is_answered && length < sizeof(client->error))
                snprintf(client->error + length, sizeof(client->error) - length,
                         " before CONNACK; does the broker use TLS on this port? Then use --tls on or "
                         "--tls-ca-file");
        if (was_handshake && length < sizeof(client->error))
                snprintf(client->error + length, sizeof(client->error) - length, "%s",
                         tls_advice(&client->config.credentials, client->error));
}

void client_report_disconnect(struct mqtt_client *client, enum mqtt_disconnect cause, int reason,
                              const char *text) {
        client_drop_poll(client);
        if (client->state == CLIENT_IDLE)
                return;

        /* A fast broker can close the connection before the first look at the socket. */
        if (reason == MOSQ_ERR_CONN_LOST)
                client->is_socket_open = true;
        if (cause == MQTT_DISCONNECTED && !client->is_socket_open)
                cause = MQTT_CONNECT_FAILED;
        complete_error(client, text);
        client->state = CLIENT_IDLE;
        client->config.callbacks.disconnected(client->config.callbacks.userdata, cause, reason,
                                              client->error);
}

/* 2. Reading and writing. */

bool mqtt_client_is_socket_connected(const struct mqtt_client *client) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);

        return getpeername(mosquitto_socket(client->library), (struct sockaddr *)&peer, &size) == 0;
}

/*
 * mosquitto_loop_read() performs the TLS handshake. CONNECT cannot be written during the handshake,
 * so do not wait for the socket to become writable. The end of the handshake is not known: return
 * true until the connection is up.
 */
static bool is_in_handshake(const struct mqtt_client *client) {
        return client->config.credentials.tls && client->state == CLIENT_CONNECTING;
}

/*
 * Under TLS the bytes may be an incomplete record: then libmosquitto reads no packet, which does no
 * harm.
 */
static bool has_unread_bytes(const struct mqtt_client *client) {
        int n_bytes = 0;

        return ioctl(mosquitto_socket(client->library), FIONREAD, &n_bytes) == 0 && n_bytes > 0;
}

/*
 * A call of mosquitto_loop_read() reads one packet, or as many packets as there are messages in
 * flight. Read repeatedly, so that the caller sees the requests of all clients together and can
 * serve them in turn.
 */
static int read_packets(struct mqtt_client *client) {
        int n_reads_max = client->read_mode == MQTT_READ_NORMAL ? READS_MAX : READS_BACKLOG_MAX;
        int n_reads = 0;
        int r;

        do {
                r = mosquitto_loop_read(client->library, 1);
                n_reads++;
        } while (r == MOSQ_ERR_SUCCESS && client->state == CLIENT_UP && n_reads < n_reads_max &&
                 has_unread_bytes(client));
        return r;
}

/*
 * The socket has an event but no peer: the connection was refused or reset. libmosquitto 2.0 does
 * not report that under TLS. Its handshake may already have cleared SO_ERROR; then the cause is not
 * known.
 */
static void report_unconnected(struct mqtt_client *client) {
        int error = 0;
        socklen_t size = sizeof(error);

        getsockopt(mosquitto_socket(client->library), SOL_SOCKET, SO_ERROR, &error, &size);
        client_report_disconnect(
                client, MQTT_CONNECT_FAILED, MOSQ_ERR_ERRNO,
                error ? strerror(error)
                      : "the connection was refused, or closed during the TLS handshake: perhaps the "
                        "broker does not use TLS on this port");
}

static void socket_on_ready(uv_poll_t *poll, int status, int events) {
        struct mqtt_client *client = poll->data;
        const struct mqtt_client_callbacks *callbacks = &client->config.callbacks;
        int r = MOSQ_ERR_SUCCESS;

        client->is_in_wakeup = true;
        client->has_had_event = true;
        client->is_socket_open = client->is_socket_open || mqtt_client_is_socket_connected(client);
        if (status < 0)
                client->poll_events = 0; /* libuv has stopped it */
        if (status < 0 || events & UV_READABLE || is_in_handshake(client))
                r = read_packets(client);
        client->has_unwritten = false;
        if (r == MOSQ_ERR_SUCCESS && mosquitto_want_write(client->library))
                r = mosquitto_loop_write(client->library, 1);
        if (r != MOSQ_ERR_SUCCESS) /* usually client_on_disconnect() has reported it already */
                client_report_disconnect(client, MQTT_DISCONNECTED, r, mosquitto_strerror(r));
        else if (!client->is_socket_open)
                report_unconnected(client);
        if (callbacks->wakeup_ended)
                callbacks->wakeup_ended(callbacks->userdata);
        client->is_in_wakeup = false;
        client_update_poll(client);
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

/*
 * Leave the poll handle as it is if the events are the same: to start it again costs two system
 * calls.
 */
static void set_poll_events(struct mqtt_client *client, int events) {
        if (events == client->poll_events)
                return;

        client->poll_events = events;
        if (events == 0)
                uv_poll_stop(client->poll);
        else
                uv_poll_start(client->poll, events, socket_on_ready);
}

void client_update_poll(struct mqtt_client *client) {
        bool wants_write;
        int events = 0;

        if (!client->poll)
                return;

        wants_write = (client->has_unwritten || mosquitto_want_write(client->library)) &&
                      !(is_in_handshake(client) && client->has_had_event);
        if (wants_write)
                events |= UV_WRITABLE;
        if (wants_read(client, wants_write))
                events |= UV_READABLE;
        set_poll_events(client, events);
}

/*
 * Create a new handle for each socket: a new socket often gets the file descriptor of the previous
 * one.
 */
int client_watch_socket(struct mqtt_client *client) {
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
        client_update_poll(client);
        return 0;
}

void mqtt_client_set_read_mode(struct mqtt_client *client, enum mqtt_read_mode read_mode) {
        if (client->read_mode == read_mode)
                return;

        client->read_mode = read_mode;
        client_update_poll(client);
}
