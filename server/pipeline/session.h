/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/outbox_frames.h"
#include "pipeline/queue.h"
#include "protocol/handshake.h"

/*
 * The session with the broker: which kind of broker it is, and the store's side of HELLO and
 * WELCOME (common/protocol/companion.h). The kind is determined once per connection. A broker with
 * the plugin is served after WELCOME. Any other broker is served at once: the senders of requests
 * are not verified, and disconnects are inferred from PUBACKs, or reported on the presence topic.
 *
 *     DOWN             connected                             NEW
 *     NEW              session_identify(): HELLO             HELLO_SENT
 *                        no memory for HELLO                 HELLO_DELAYED
 *                        no plugin, but it is required       WITHOUT_PLUGIN
 *                        no plugin                           PLAIN
 *     HELLO_SENT       WELCOME                               WITH_PLUGIN
 *                      deadline                              NEW
 *     HELLO_DELAYED    deadline                              NEW
 *     WITHOUT_PLUGIN   banner                                NEW
 *     each             the end of the connection             DOWN
 *                      session_restart()                     NEW
 *                      session_restart_later()               HELLO_DELAYED
 */
enum session_state {
        SESSION_DOWN,
        SESSION_NEW,            /* session_identify() must be called */
        SESSION_WITHOUT_PLUGIN, /* the required plugin is awaited */
        SESSION_HELLO_DELAYED,  /* memory was short: NEW after deadline_ns */
        SESSION_HELLO_SENT,     /* WELCOME is awaited until deadline_ns */
        SESSION_PLAIN,          /* a broker without the plugin is served */
        SESSION_WITH_PLUGIN,    /* a broker with the plugin is served */
};

struct session {
        struct outbox *outbox; /* borrowed, as are the following */
        struct queue *queue;
        struct outbox_frames *frames;
        enum session_state state;
        int64_t deadline_ns;     /* of the present state; INT64_MAX: none */
        bool is_session_present; /* of the MQTT session, at the last CONNACK */
        bool is_plugin_detected; /* by its banner (a retained message), or by the SUBACK of COMPANION_PROBE */
        bool requires_plugin;
        /*
         * These states of the plugin were logged. They end when a plugin of this version is
         * detected.
         */
        bool is_plugin_missing_logged, is_other_version_logged;
        struct log_limit takeover_limit, frame_limit;

        uint64_t run;        /* random number of this process: see common/protocol/companion.h */
        uint64_t broker_run; /* of the last WELCOME */
        uint64_t n_hellos;
        uint8_t secret[COMPANION_KEY_SIZE];    /* the keys of HELLO are derived from it */
        struct slice instance_id;              /* borrowed */
        uint8_t hello_key[COMPANION_KEY_SIZE]; /* sent in the latest HELLO; decrypts WELCOME */
};

/* BROKER_UNKNOWN unless a broker is served. */
enum broker_kind session_broker_kind(const struct session *session);

void session_connected(struct session *session, bool session_present);
void session_disconnected(struct session *session);

/* Identify the broker again, although the connection has not ended: at once, or after 1 s. */
void session_restart(struct session *session);
void session_restart_later(struct session *session, struct now now);

/*
 * In SESSION_NEW, between two batches: send HELLO if the plugin was detected; wait if the required
 * plugin was not detected; else return true: serve a plain broker, with session_serve_plain().
 */
bool session_identify(struct session *session, struct now now);

/* The broker is served from now on. welcome: of its plugin. */
void session_serve_plain(struct session *session);
void session_serve_plugin(struct session *session, const struct handshake_welcome *welcome);

/* What the caller must do after a message of the plugin. */
enum session_event_type {
        SESSION_EVENT_NONE,
        SESSION_EVENT_WELCOME,       /* process `welcome`, then call session_serve_plugin() */
        SESSION_EVENT_FRAME,         /* its records wait in the queue */
        SESSION_EVENT_FRAME_MISSING, /* identify the broker again: the plugin sends its requests again */
};

/* Owned by the caller: session_event_deinit(). */
struct session_event {
        enum session_event_type type;
        struct handshake_welcome welcome; /* borrows from `text` */
        uint8_t *text;
};

void session_event_deinit(struct session_event *event);

/* Process a message of the plugin on its arrival. Returns false for other messages. */
bool session_receive(struct session *session, const struct message *message, struct now now,
                     struct session_event *ret_event);

/* If the deadline for WELCOME, or of SESSION_HELLO_DELAYED, has passed, enter SESSION_NEW. */
void session_tick(struct session *session, struct now now);
