/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/publisher.h"
#include "protocol/companion_hello.h"
#include "protocol/companion_mac.h"

/*
 * The session with the broker: which kind of broker it is, and the store's side of HELLO and
 * WELCOME (common/protocol/companion.h). The kind is determined once per connection. A broker with
 * the plugin is served after WELCOME. Any other broker is served at once: the senders of requests
 * are not verified, and disconnects are inferred from PUBACKs, or reported on the presence topic.
 *
 *                                   no plugin
 *     DOWN ──connected──► NEW ──session_identify()──► PLAIN
 *                          ▲  │          │
 *                 time-out │  │ HELLO    │ no plugin, but it is required: WITHOUT_PLUGIN; its banner: NEW
 *                          │  ▼
 *                          HELLO_SENT ──PUBACK──► HELLO_ACKNOWLEDGED ──WELCOME──► WITH_PLUGIN
 *
 * From each state, the end of the connection leads to DOWN.
 */
enum session_state {
        SESSION_DOWN,
        SESSION_NEW,                /* session_identify() must be called */
        SESSION_WITHOUT_PLUGIN,     /* the required plugin is awaited */
        SESSION_HELLO_DROPPED,      /* HELLO could not be published: session_tick() sends it again */
        SESSION_HELLO_SENT,         /* the PUBACK of HELLO is awaited, without a limit */
        SESSION_HELLO_ACKNOWLEDGED, /* WELCOME is awaited until deadline_ns */
        SESSION_PLAIN,              /* a broker without the plugin is served */
        SESSION_WITH_PLUGIN,        /* a broker with the plugin is served */
};

/* The latest HELLO. */
struct hello_exchange {
        struct companion_number_pair correlation; /* its Correlation Data */
        uint8_t key[COMPANION_KEY_SIZE];          /* sent in it; decrypts WELCOME */
        uint16_t message_id;
        int64_t deadline_max_ns; /* session_extend_timeout() extends deadline_ns at most until then */
};

struct session {
        struct publisher *publisher; /* borrowed */
        enum session_state state;
        int64_t deadline_ns;     /* of the present state; INT64_MAX: none */
        bool is_session_present; /* of the MQTT session, at the last CONNACK */
        bool is_plugin_detected; /* by its banner (a retained message), or by the SUBACK of COMPANION_PROBE */
        bool requires_plugin;
        bool is_guarded; /* the plugin refuses a CONNECT with the store's client id by another user */
        /*
         * These states of the plugin were logged. They end when a plugin of this version is
         * detected.
         */
        bool is_plugin_missing_logged, is_other_version_logged;
        struct log_limit takeover_limit;

        uint64_t run; /* random number of this process: see common/protocol/companion.h */
        uint64_t n_hellos;
        uint8_t secret[COMPANION_KEY_SIZE]; /* the keys of HELLO are derived from it */
        struct slice instance_id;           /* borrowed */
        struct hello_exchange hello;

        /*
         * The MAC keys (common/protocol/companion.h), each with the sequence number of the last
         * accepted request. A commit stores only `acknowledged_key_states`, the numbers of requests
         * whose replies the broker has acknowledged: after a restart the broker may deliver the
         * requests after them again, and the store must accept these. `published_key_states` is a
         * copy of `key_states` from a time when all replies were published, after published_n_sent
         * messages. When the broker has acknowledged these messages, the copy becomes
         * `acknowledged_key_states`. WELCOME sets its key in all three.
         */
        struct companion_key_states key_states, acknowledged_key_states, published_key_states;
        uint64_t published_n_sent;
};

/* BROKER_UNKNOWN unless a broker is served. */
enum broker_kind session_broker_kind(const struct session *session);

/* Return true if HELLO is sent and WELCOME has not arrived. */
bool session_awaits_welcome(const struct session *session);

void session_connected(struct session *session, bool session_present);
void session_disconnected(struct session *session);

/* Identify the broker again, although the connection has not ended. */
void session_restart(struct session *session);

/*
 * In SESSION_NEW, when all replies and TRACK messages of earlier batches are published: send HELLO
 * if the plugin was detected; wait if the required plugin was not detected; else return true: serve
 * a plain broker, with session_serve().
 */
bool session_identify(struct session *session, struct now now);

/* The broker is served from now on: BROKER_PLAIN, or BROKER_WITH_PLUGIN after WELCOME. */
void session_serve(struct session *session, enum broker_kind broker_kind);

/* What the caller must do after a message of the plugin. */
enum session_event_type {
        SESSION_EVENT_NONE,
        SESSION_EVENT_WELCOME,      /* process `welcome`, then call session_serve() */
        SESSION_EVENT_DELIVERED,    /* the plugin has delivered the notifications up to `sequence` */
        SESSION_EVENT_SLOW_WATCHER, /* the plugin has closed the connection of the client in the payload */
};

struct session_event {
        enum session_event_type type;
        struct companion_welcome welcome; /* owned by the caller: companion_welcome_deinit() */
        uint64_t sequence;
};

/*
 * Process a message of the plugin on its arrival. Returns false for other messages, and for
 * DISCONNECTED, which is executed in the batch.
 */
bool session_receive(struct session *session, const struct message *message, struct now now,
                     struct session_event *ret_event);

/* The broker has acknowledged the message with this id. If it is HELLO, set the deadline for WELCOME. */
void session_acknowledged(struct session *session, uint16_t id, struct now now);

/*
 * Postpone the deadline for WELCOME. Call for each message that arrives before WELCOME: WELCOME may
 * be queued behind it.
 */
void session_extend_timeout(struct session *session, struct now now);

/* If the deadline for WELCOME, or for repeating a dropped HELLO, has passed, enter SESSION_NEW. */
void session_tick(struct session *session, struct now now);

/*
 * Set the MAC key of WELCOME. Returns true if the next commit must store it: if store and broker
 * both restart, requests that wait in the session need it.
 */
bool session_set_mac_key(struct session *session, const uint8_t key[COMPANION_KEY_SIZE]);

/* All replies are published, and no message waits. */
void session_replies_published(struct session *session);

/* The MAC keys to store. */
struct companion_key_states session_acknowledged_keys(struct session *session);
