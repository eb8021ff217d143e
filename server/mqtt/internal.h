/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "mqtt/mqtt_client.h"

/* Shared by mqtt_client.c, connect.c, client_credentials.c, socket.c and linger.c. */

enum client_state {
        CLIENT_IDLE,
        CLIENT_CONNECTING, /* until mqtt_client_set_is_up() */
        CLIENT_UP,
};

struct mqtt_client {
        struct mqtt_client_config config;
        uv_loop_t *loop;
        struct mosquitto *library; /* the instance of libmosquitto */
        enum client_state state;
        size_t address;            /* index of the next address of the broker to try */
        size_t n_addresses;        /* result of the latest lookup of its name */
        bool is_socket_open;       /* the socket of this attempt was connected at some time */
        bool has_had_event;        /* the socket has had an event; TLS: the handshake has begun */
        bool has_unwritten;        /* bytes remained after a publish, and no wake-up has written since */
        bool is_answered;          /* CONNACK has arrived */
        uint32_t max_packet_bytes; /* mqtt_client_max_packet_bytes() */
        enum mqtt_read_mode read_mode;
        uv_poll_t *poll; /* NULL while there is no socket */
        int poll_events; /* the events that poll watches; 0: stopped */
        uv_timer_t misc_timer;
        uv_getaddrinfo_t lookup;
        bool is_looking_up;
        bool is_in_wakeup; /* socket_on_ready() is running; it calls client_update_poll() at its end */
        char error[512];   /* latest log line of libmosquitto while connecting: TLS errors are only there */
        void (*closed)(void *userdata);
        int n_open_handles; /* while closing: the timer and a lookup that have not ended */
};

/* mqtt_client.c */

/* While closing: a handle, or the lookup, has ended. Frees the client after the last one. */
void client_release(struct mqtt_client *client);

/* socket.c; it calls no function of the others */

/* Watch the new socket of libmosquitto. Returns 0 or -errno. */
int client_watch_socket(struct mqtt_client *client);

/* Watch the socket for the events that libmosquitto waits for. No effect without a socket. */
void client_update_poll(struct mqtt_client *client);

/* Stop reading and watching the socket. */
void client_drop_poll(struct mqtt_client *client);

/*
 * Call disconnected() once per connection or attempt, also if libmosquitto reports the end twice.
 */
void client_report_disconnect(struct mqtt_client *client, enum mqtt_disconnect cause, int reason,
                              const char *text);

/* linger.c */

/*
 * Read and drop what arrives at the socket until the peer closes the connection, for up to 2 s. Then
 * close the socket and call done. Returns 0, or -ENOMEM: the socket is still the caller's, and done
 * is not called.
 */
int client_linger(uv_loop_t *loop, int fd, void (*done)(void *userdata), void *userdata);

/* client_credentials.c */

/* Call once per client. Returns 0, -EINVAL if a certificate or key is unusable, or -ENOMEM. */
int credentials_set_tls(const struct credentials *credentials, struct mosquitto *client);

/* Call before each connection: set the user and the password. Returns 0 or -EINVAL. */
int credentials_set_password(const struct credentials *credentials, struct mosquitto *client,
                             struct credentials_fault *ret_fault);
