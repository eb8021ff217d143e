/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "pipeline/internal.h"
#include "protocol/companion_box.h"

/*
 * Time for WELCOME to arrive. Then the store sends HELLO again: the broker drops WELCOME if the queue
 * of the store's session is full. A broker that is slower replies to each HELLO, and the last WELCOME
 * counts.
 */
#define WELCOME_TIMEOUT_NS INT64_C(10000000000)

/* Delay of HELLO if memory was short: the shortage may be brief. */
#define HELLO_RETRY_NS INT64_C(1000000000)

/* 1. The state */

static void enter_state(struct peer *peer, enum peer_state state, int64_t deadline_ns) {
        peer->state = state;
        peer->deadline_ns = deadline_ns;
}

enum broker_kind peer_broker_kind(const struct peer *peer) {
        switch (peer->state) {
        case PEER_PLAIN:
                return BROKER_PLAIN;
        case PEER_WITH_PLUGIN:
                return BROKER_WITH_PLUGIN;
        default:
                return BROKER_UNKNOWN;
        }
}

bool peer_accepts(const struct peer *peer, const struct queue_item *item) {
        bool is_in_frame = item->record.number > 0;

        return peer->state != PEER_WITH_PLUGIN || is_in_frame || item->kind == QUEUE_CONTROL ||
               item->requester;
}

static void drop_welcome(struct peer *peer) {
        free(peer->welcome_text);
        peer->welcome_text = NULL;
        buf_deinit(&peer->retained);
        peer->is_check_begun = false;
}

void peer_deinit(struct peer *peer) {
        drop_welcome(peer);
}

/* The broker is no longer served. */
static void stop_serving(struct pipeline *pipeline) {
        drop_welcome(&pipeline->peer);
        queue_drop_frames(&pipeline->queue);
        outbox_close(&pipeline->outbox);
}

void peer_connected(struct peer *peer, bool session_present) {
        peer->is_session_present = session_present;
        enter_state(peer, PEER_NEW, INT64_MAX);
}

void peer_disconnected(struct pipeline *pipeline) {
        pipeline->peer.is_plugin_detected = false;
        stop_serving(pipeline);
        enter_state(&pipeline->peer, PEER_DOWN, INT64_MAX);
}

void peer_restart(struct pipeline *pipeline) {
        stop_serving(pipeline);
        enter_state(&pipeline->peer, PEER_NEW, INT64_MAX);
}

/* Memory was short, or publishing failed: identify the broker again, but not at once. */
static void restart_later(struct pipeline *pipeline, struct now now) {
        stop_serving(pipeline);
        enter_state(&pipeline->peer, PEER_HELLO_DELAYED, now.mono_ns + HELLO_RETRY_NS);
}

/* Log that the broker lacks the required plugin: once, until the plugin is detected. */
static void log_plugin_missing(struct peer *peer) {
        if (!peer->is_plugin_missing_logged)
                log_error("require-plugin is on, but the broker has no plugin of this version: load "
                          "mosquitto_statestore.so in the broker, before other plugins; the store waits for "
                          "it");
        peer->is_plugin_missing_logged = true;
}

/* Log that the plugin has another version: once, until a plugin of this version is detected. */
static void log_other_version(struct peer *peer) {
        if (!peer->is_other_version_logged)
                log_warning("the plugin in the broker has another version, so the store does not use it: "
                            "load the plugin of this version of statestored");
        peer->is_other_version_logged = true;
}

/* 2. HELLO */

/* Send HELLO, and expect the frames that follow it. */
static void send_hello(struct pipeline *pipeline, struct now now) {
        CLEANUP(buf_deinit) struct buf payload = { 0 };
        struct peer *peer = &pipeline->peer;
        struct handshake_hello hello = { .run = peer->run,
                                         .number = ++peer->n_hellos,
                                         .served_broker_run = pipeline->state->served_broker_run,
                                         .instance_id =
                                                 slice_from_string(pipeline->state->header.instance_id) };
        struct message message = { .topic = SLICE_LITERAL(COMPANION_HELLO), .qos = 1 };

        companion_hello_key(peer->secret, hello.number, hello.key);
        memcpy(peer->hello_key, hello.key, sizeof(hello.key));
        queue_expect_frames(&pipeline->queue, hello.key);
        outbox_frames_drop(&pipeline->outbox);
        handshake_hello_append(&payload, &hello);
        message.payload = buf_slice(&payload);
        if (!buf_failed(&payload) && outbox_send(&pipeline->outbox, &message) >= 0)
                enter_state(peer, PEER_HELLO_SENT, now.mono_ns + WELCOME_TIMEOUT_NS);
        else
                restart_later(pipeline, now);
}

/*
 * If the session or the plugin has disappeared, the broker was probably restarted: treat all
 * connections as ended. The session also disappears when it expires. The plugin may have
 * disappeared while the store did not run: then the stored registrations have connections.
 */
static bool must_end_connections(const struct pipeline *pipeline) {
        return !pipeline->peer.is_session_present ||
               registrations_have_connections(engine_registrations(pipeline->state->engine));
}

/*
 * Send HELLO if the plugin was detected; wait if the required plugin was not detected; else prepare to
 * serve a plain broker.
 */
static void identify_broker(struct pipeline *pipeline, struct now now) {
        struct peer *peer = &pipeline->peer;

        if (peer->is_plugin_detected) {
                peer->is_plugin_missing_logged = peer->is_other_version_logged = false;
                send_hello(pipeline, now);
        } else if (peer->requires_plugin) {
                log_plugin_missing(peer);
                enter_state(peer, PEER_WITHOUT_PLUGIN, INT64_MAX);
        } else {
                enter_state(peer, must_end_connections(pipeline) ? PEER_PREPARING : PEER_PREPARED,
                            INT64_MAX);
        }
}

/*
 * Without WELCOME, the store must not serve the broker as a plain broker: any client could send
 * requests as another client.
 */
void peer_tick(struct peer *peer, struct now now) {
        if (now.mono_ns < peer->deadline_ns)
                return;

        if (peer->state == PEER_HELLO_SENT)
                log_warning("the plugin in the broker does not reply yet: the store waits for it");
        enter_state(peer, PEER_NEW, INT64_MAX);
}

/* 3. WELCOME */

/* Append the numbers of the connections, in ascending order. */
static void append_sorted(struct buf *numbers, struct slice connections) {
        struct handshake_connection connection;

        while (handshake_next_connection(&connections, &connection))
                buf_append(numbers, &connection.number, sizeof(connection.number));
        if (numbers->length > 0 && !buf_failed(numbers))
                qsort(numbers->data, numbers->length / sizeof(uint64_t), sizeof(uint64_t), compare_uint64);
}

/* Takes the text, from which welcome borrows. */
static void accept_welcome(struct pipeline *pipeline, uint8_t *text, const struct handshake_welcome *welcome,
                           struct now now) {
        struct peer *peer = &pipeline->peer;

        peer->welcome_text = text;
        peer->welcome = *welcome;
        append_sorted(&peer->retained, welcome->connections);
        if (buf_failed(&peer->retained)) {
                drops_out_of_memory(&pipeline->drops);
                restart_later(pipeline, now);
                return;
        }
        enter_state(peer, PEER_PREPARING, INT64_MAX);
}

void peer_receive_welcome(struct pipeline *pipeline, struct slice box, struct now now) {
        CLEANUP(cleanup_free) uint8_t *text = NULL;
        struct peer *peer = &pipeline->peer;
        struct handshake_welcome welcome;
        size_t length;

        if (peer->state != PEER_HELLO_SENT)
                return;
        text = malloc(box.length + 1);
        if (!text) {
                drops_out_of_memory(&pipeline->drops); /* HELLO is repeated after the timeout */
                return;
        }
        /* a WELCOME that cannot be decrypted replies to an earlier HELLO */
        if (companion_box_open(box, peer->hello_key, text, &length) < 0 ||
            handshake_welcome_read((struct slice){ text, length }, &welcome) < 0)
                return;

        if (welcome.is_takeover)
                log_limited(&peer->takeover_limit, LOG_ERROR,
                            "another statestored serves this broker, too: the two disconnect each other "
                            "repeatedly; stop one of them");
        accept_welcome(pipeline, take_ptr(&text), &welcome, now);
}

/* 4. Serving */

/*
 * Check the next registrations: end those whose connections have ended. Returns true when all are
 * checked.
 */
static bool check_registrations(struct pipeline *pipeline, struct now now) {
        struct peer *peer = &pipeline->peer;
        struct event retained = { .type = EVENT_CONNECTIONS_RETAINED,
                                  .connections = (const uint64_t *)peer->retained.data,
                                  .n_connections = peer->retained.length / sizeof(uint64_t) };
        int r = ENGINE_STEP_UNFINISHED;

        while (r == ENGINE_STEP_UNFINISHED && !pipeline_must_commit(pipeline) &&
               !work_clock_is_over(&pipeline->clock)) {
                retained.is_continued = peer->is_check_begun;
                r = engine_step(pipeline->state->engine, &retained, now, &pipeline->batch.effects);
                peer->is_check_begun = true;
                work_clock_charge(&pipeline->clock, &pipeline->batch.work_ns);
        }
        return r == ENGINE_STEP_DONE;
}

/*
 * Kick the clients that the plugin tracks and for which the store has no registrations: the
 * registrations ended by a new policy, or while a plain broker was served. A pending request may register
 * again. Call after EVENT_CONNECTIONS_RETAINED: before it, a client may have registrations of a former
 * connection, too, and then only one of its connections is found.
 */
static void kick_stale_clients(struct pipeline *pipeline, struct slice connections) {
        struct handshake_connection connection;

        while (handshake_next_connection(&connections, &connection))
                if (connection.is_tracked && !connection.is_pending &&
                    !registrations_of_connection(engine_registrations(pipeline->state->engine),
                                                 connection.number))
                        outbox_frames_kick(&pipeline->outbox, connection.number);
        outbox_frames_flush(&pipeline->outbox);
}

static void serve_plain(struct pipeline *pipeline) {
        enter_state(&pipeline->peer, PEER_PLAIN, INT64_MAX);
        outbox_open(&pipeline->outbox, &outbox_messages_backend);
        pipeline->callbacks.serving(pipeline->callbacks.userdata, BROKER_PLAIN);
}

static void serve_plugin(struct pipeline *pipeline) {
        struct peer *peer = &pipeline->peer;

        enter_state(peer, PEER_WITH_PLUGIN, INT64_MAX);
        outbox_open(&pipeline->outbox, &outbox_frames_backend);
        outbox_frames_send_first(&pipeline->outbox);
        kick_stale_clients(pipeline, peer->welcome.connections);
        drop_welcome(peer);
        pipeline->callbacks.serving(pipeline->callbacks.userdata, BROKER_WITH_PLUGIN);
}

/* Check the registrations. Then the run of a broker with the plugin must be stored. */
static void prepare_serving(struct pipeline *pipeline, struct now now) {
        struct peer *peer = &pipeline->peer;
        const struct handshake_welcome *welcome = &peer->welcome;

        if (peer->welcome_text && !peer->is_check_begun)
                outbox_skip_to(&pipeline->outbox, welcome->published);
        if (!check_registrations(pipeline, now))
                return;
        enter_state(peer, PEER_PREPARED, INT64_MAX);
        if (peer->welcome_text && state_serve_run(pipeline->state, welcome->broker_run) && pipeline->storage)
                pipeline->batch.is_commit_required = true;
}

/* The records of frames that have failed did not end: the plugin sends them again after HELLO. */
void peer_advance(struct pipeline *pipeline, struct now now) {
        struct peer *peer = &pipeline->peer;

        if (pipeline->outbox.status == OUTBOX_FAILED)
                restart_later(pipeline, now);
        if (peer->state == PEER_NEW)
                identify_broker(pipeline, now);
        if (peer->state == PEER_PREPARING)
                prepare_serving(pipeline, now);
        if (peer->state != PEER_PREPARED || pipeline->batch.is_commit_required)
                return;
        if (peer->welcome_text)
                serve_plugin(pipeline);
        else
                serve_plain(pipeline);
}

bool peer_is_preparing(const struct peer *peer) {
        return peer->state == PEER_PREPARING || peer->state == PEER_PREPARED;
}

/* 5. The banner, and frames */

void peer_receive_banner(struct peer *peer, struct slice version) {
        peer->is_plugin_detected = slice_equal(version, SLICE_LITERAL(COMPANION_VERSION));
        if (!peer->is_plugin_detected)
                log_other_version(peer);
        else if (peer->state == PEER_WITHOUT_PLUGIN)
                enter_state(peer, PEER_NEW, INT64_MAX);
}

void peer_lost_frame(struct pipeline *pipeline, int result) {
        if (result == -ENOMEM)
                drops_out_of_memory(&pipeline->drops);
        else
                log_limited(&pipeline->peer.frame_limit, LOG_WARNING,
                            result == QUEUE_FRAME_MALFORMED
                                    ? "frame of the plugin ignored: it is malformed; the "
                                      "plugin sends its requests again"
                                    : "the broker has dropped a frame of the plugin, or had "
                                      "no memory for a frame of the store; the plugin sends "
                                      "its requests again");
        peer_restart(pipeline);
}
