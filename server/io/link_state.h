/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <mosquitto.h>

#include "io/link.h"
#include "io/read_ahead.h"

/* What the link's three files share. Internal to them. */

/* The first pause between attempts, and the last, after which they do not grow. */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_LAST_MS  15000

enum link_state {
        LINK_WAITING,    /* for the next attempt */
        LINK_CONNECTING, /* until CONNACK and SUBACKs */
        LINK_UP,
        LINK_CLOSING, /* until all is sent */
};

struct link {
        struct link_config config;
        uv_loop_t *loop;
        struct mosquitto *client;
        enum link_state state;
        size_t endpoint;     /* index */
        size_t address;      /* the next of those that the endpoint's name stands for */
        size_t n_subscribed; /* SUBACKs so far */
        bool session_kept;
        bool is_socket_open; /* TCP's part: false until the socket was writable once */
        enum link_reading reading;
        uv_poll_t *poll; /* NULL while there is no socket */
        struct read_ahead read_ahead;
        int watched; /* the events that it waits for; 0: it is stopped */
        uv_timer_t misc_timer;
        uv_timer_t retry_timer;
        uint64_t backoff_ms; /* until the link has been up for longer than the last of them */
        uint64_t up_since_ms;
        uint32_t n_outstanding; /* published, not yet acknowledged */
        uint64_t n_outstanding_bytes;
        uint32_t n_bytes_of[65536]; /* by packet identifier */
        uint32_t send_maximum;
        uint32_t max_packet_bytes; /* that the broker accepts */
        uint64_t close_until_ms;
        void (*closed)(void *userdata);
        uv_getaddrinfo_t resolution;
        bool is_resolving;
        int n_open; /* while closing: timers, and a resolution, that have not ended */
        char library_error
                [256]; /* what libmosquitto logged last while connecting: TLS says why only there */
};

/* link_attempts.c */

/* A timer's callback: tries to connect. */
void link_attempt(uv_timer_t *timer);

/* A timer's callback, once a second: the library's own timers, and the end of our patience when closing. */
void link_misc(uv_timer_t *timer);

/* The connection has ended, or an attempt has failed: another one follows after a pause. */
void link_lose(struct link *link, const char *reason);

/* Watches the present socket for what the library waits for. */
void link_update_poll(struct link *link);

/* The present socket is no more, or is not to be watched any longer. */
void link_drop_poll(struct link *link);

/* link_events.c: what the library tells, from now on. */
void link_set_callbacks(struct mosquitto *client);

/* Whether library_error is kept up to date. While anybody listens the library writes a text for each packet. */
void link_listen_to_log(struct link *link, bool listens);

/* link.c: all is sent, or cannot be: disconnects, and frees the link once nothing of it is under way. */
void link_finish_close(struct link *link);
bool link_is_closing(const struct link *link);

/* Something that was under way when it was closed has ended. */
void link_release(struct link *link);
