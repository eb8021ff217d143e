/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "protocol/broker_log.h"
#include "protocol/companion_box.h"

/*
 * Time for WELCOME to arrive. Then the store sends HELLO again: the broker drops WELCOME if the queue
 * of the store's session is full. A broker that is slower replies to each HELLO, and the last WELCOME
 * counts.
 */
#define WELCOME_TIMEOUT_NS INT64_C(10000000000)

/* Delay of HELLO if memory was short: the shortage may be brief. */
#define HELLO_RETRY_NS INT64_C(1000000000)

/* 1. The kind of the broker */

static void enter(struct session *session, enum session_state state, int64_t deadline_ns) {
        session->state = state;
        session->deadline_ns = deadline_ns;
}

enum broker_kind session_broker_kind(const struct session *session) {
        switch (session->state) {
        case SESSION_PLAIN:
                return BROKER_PLAIN;
        case SESSION_WITH_PLUGIN:
                return BROKER_WITH_PLUGIN;
        default:
                return BROKER_UNKNOWN;
        }
}

void session_connected(struct session *session, bool session_present) {
        session->is_session_present = session_present;
        enter(session, SESSION_NEW, INT64_MAX);
}

void session_restart(struct session *session) {
        enter(session, SESSION_NEW, INT64_MAX);
}

void session_restart_later(struct session *session, struct now now) {
        enter(session, SESSION_HELLO_DELAYED, now.mono_ns + HELLO_RETRY_NS);
}

void session_disconnected(struct session *session) {
        session->is_plugin_detected = false;
        queue_drop_frames(session->queue);
        enter(session, SESSION_DOWN, INT64_MAX);
}

void session_serve_plain(struct session *session) {
        enter(session, SESSION_PLAIN, INT64_MAX);
}

void session_serve_plugin(struct session *session, const struct handshake_welcome *welcome) {
        session->broker_run = welcome->broker_run;
        enter(session, SESSION_WITH_PLUGIN, INT64_MAX);
}

/* Log that the broker lacks the required plugin: once, until the plugin is detected. */
static void log_plugin_missing(struct session *session) {
        if (!session->is_plugin_missing_logged)
                log_error("require-plugin is on, but the broker has no plugin of this version: load "
                          "mosquitto_statestore.so in the broker, before other plugins; the store waits for "
                          "it");
        session->is_plugin_missing_logged = true;
}

/* Log that the plugin has another version: once, until a plugin of this version is detected. */
static void log_other_version(struct session *session) {
        if (!session->is_other_version_logged)
                log_warning("the plugin in the broker has another version, so the store does not use it: "
                            "load the plugin of this version of statestored");
        session->is_other_version_logged = true;
}

/* 2. HELLO */

/* Send HELLO, and drop the frames that belong to the one before. */
static void send_hello(struct session *session, struct now now) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct handshake_hello hello = { .run = session->run,
                                         .number = ++session->n_hellos,
                                         .instance_id = session->instance_id };
        struct message message = { .topic = SLICE_LITERAL(COMPANION_HELLO), .qos = 1 };
        uint16_t id;

        companion_hello_key(session->secret, hello.number, hello.key);
        memcpy(session->hello_key, hello.key, sizeof(hello.key));
        queue_expect_frames(session->queue, hello.key);
        outbox_frames_start(session->frames);
        handshake_hello_append(&payload, &hello);
        message.payload = buf_slice(&payload);
        if (!buf_failed(&payload) && outbox_send(session->outbox, &message, &id) == 0)
                enter(session, SESSION_HELLO_SENT, now.mono_ns + WELCOME_TIMEOUT_NS);
        else
                session_restart_later(session, now);
}

bool session_identify(struct session *session, struct now now) {
        if (session->is_plugin_detected) {
                session->is_plugin_missing_logged = session->is_other_version_logged = false;
                send_hello(session, now);
                return false;
        }
        if (!session->requires_plugin)
                return true;

        log_plugin_missing(session);
        enter(session, SESSION_WITHOUT_PLUGIN, INT64_MAX);
        return false;
}

/*
 * Without WELCOME, the store must not serve the broker as a plain broker: any client could send
 * requests as another client.
 */
void session_tick(struct session *session, struct now now) {
        if (now.mono_ns < session->deadline_ns)
                return;

        if (session->state == SESSION_HELLO_SENT)
                log_warning("the plugin in the broker does not reply yet: the store waits for it");
        enter(session, SESSION_NEW, INT64_MAX);
}

/* 3. Messages of the plugin */

/* The banner may wait behind other messages in the store's session: after session_identify(). */
static void receive_banner(struct session *session, const struct message *message) {
        session->is_plugin_detected = slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
        if (!session->is_plugin_detected)
                log_other_version(session);
        else if (session->state == SESSION_WITHOUT_PLUGIN)
                enter(session, SESSION_NEW, INT64_MAX);
}

/* Ignore a WELCOME that cannot be decrypted: it replies to an earlier HELLO. */
static void receive_welcome(struct session *session, const struct message *message,
                            struct session_event *event) {
        struct slice box = message->payload;
        size_t length;

        if (session->state != SESSION_HELLO_SENT)
                return;
        event->text = malloc(box.length + 1);
        if (!event->text) {
                drops_out_of_memory(session->outbox->drops); /* HELLO is repeated after the timeout */
                return;
        }
        if (companion_box_open(box, session->hello_key, event->text, &length) < 0 ||
            handshake_welcome_read((struct slice){ event->text, length }, &event->welcome) < 0)
                return;

        event->type = SESSION_EVENT_WELCOME;
        if (event->welcome.is_takeover)
                log_limited(&session->takeover_limit, LOG_ERROR,
                            "another statestored serves this broker, too: the two disconnect each other "
                            "repeatedly; stop one of them");
}

/* Until WELCOME, a frame can only be one that followed an earlier HELLO. */
static void receive_frame(struct session *session, const struct message *message, struct now now,
                          struct session_event *event) {
        int r;

        if (session->state != SESSION_WITH_PLUGIN)
                return;

        r = queue_add_frame(session->queue, message->payload, now.mono_ns);
        switch (r) {
        case QUEUE_FRAME_ADDED:
                event->type = SESSION_EVENT_FRAME;
                return;
        case QUEUE_FRAME_IGNORED:
                return;
        case -ENOMEM:
                drops_out_of_memory(session->outbox->drops);
                break;
        default:
                log_limited(&session->frame_limit, LOG_WARNING,
                            r == QUEUE_FRAME_MALFORMED
                                    ? "frame of the plugin ignored: it is malformed; the "
                                      "plugin sends its requests again"
                                    : "the broker has dropped a frame of the plugin, or had "
                                      "no memory for a frame of the store; the plugin sends "
                                      "its requests again");
        }
        event->type = SESSION_EVENT_FRAME_MISSING;
}

bool session_receive(struct session *session, const struct message *message, struct now now,
                     struct session_event *ret_event) {
        *ret_event = (struct session_event){ .type = SESSION_EVENT_NONE };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_FRAME_TO_STORE)))
                receive_frame(session, message, now, ret_event);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_WELCOME)))
                receive_welcome(session, message, ret_event);
        else if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_BANNER)))
                receive_banner(session, message);
        else /* ignore the broker's log: only the plugin needs the subscription (slow_watchers.c) */
                return slice_equal(message->topic, SLICE_LITERAL(BROKER_LOG_NOTICE));
        return true;
}

void session_event_deinit(struct session_event *event) {
        free(event->text);
        *event = (struct session_event){ .type = SESSION_EVENT_NONE };
}
