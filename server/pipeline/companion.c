/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store's side of the companion protocol (common/protocol/companion.h). A broker with the plugin replies to HELLO with
 * WELCOME. Then the store verifies the senders of requests, and the plugin reports disconnects. Any other broker is served at
 * once: the senders are not verified, and disconnects are inferred from PUBACKs.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "codec/companion_messages.h"
#include "codec/identity.h"
#include "engine/persistence.h"
#include "pipeline/internal.h"
#include "protocol/topics.h"

/*
 * Time for WELCOME to arrive after the PUBACK of HELLO. After this timeout, the store sends HELLO again. DELIVERED and each
 * early message restart the timeout, because messages that waited in the session precede WELCOME. WELCOME_TIMEOUT_MAX_NS
 * limits this extension. Before the PUBACK there is no limit: the broker may be slow.
 */
#define WELCOME_TIMEOUT_NS     INT64_C(10000000000)
#define WELCOME_TIMEOUT_MAX_NS INT64_C(60000000000)

/* Acknowledge DISCONNECTED with UNTRACK. If memory is short, send nothing: the plugin repeats DISCONNECTED. */
static void acknowledge_disconnect(struct pipeline *pipeline, uint64_t connection) {
        struct effects *effects = &pipeline->batch.effects;

        if (pipeline->broker_kind == BROKER_WITH_PLUGIN && effects_reserve_track(effects) == 0)
                effects_track(effects, connection, UNTRACK_CONNECTION);
}

/* Execute a disconnect that the plugin or the presence topic reports. */
void companion_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event disconnected = { .type = EVENT_CONNECTION_CLOSED };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DISCONNECTED))) {
                if (parse_uint64(message->payload, &disconnected.connection) == 0 &&
                    pipeline_step(pipeline, &disconnected, now) == 0)
                        acknowledge_disconnect(pipeline, disconnected.connection);
                return;
        }

        disconnected.type = EVENT_CLIENT_DISCONNECTED;
        if (pipeline->presence_topic && pipeline->broker_kind == BROKER_PLAIN &&
            topic_match_client(message->topic, slice_from_string(pipeline->presence_topic),
                               &disconnected.client))
                pipeline_step(pipeline, &disconnected, now);
}

/*
 * If the present or the previous broker has the plugin, publish the notifications whose delivery is unknown again. The PUBACK
 * of a frame does not mean that the plugin has processed the frame. The plugin drops changes that it has delivered already. If
 * neither broker has the plugin, do nothing: the transport itself repeats messages without a PUBACK.
 */
static void publish_again(struct pipeline *pipeline, enum broker_kind broker_kind) {
        if (broker_kind == BROKER_WITH_PLUGIN || pipeline->last_broker_kind == BROKER_WITH_PLUGIN)
                outbox_rewind(&pipeline->outbox);
}

static void serve(struct pipeline *pipeline, enum broker_kind broker_kind, struct now now) {
        publish_again(pipeline, broker_kind);
        pipeline->broker_kind = broker_kind;
        pipeline->last_broker_kind = broker_kind;
        pipeline->hello.state = HELLO_NONE;
        pipeline->hello.deadline_ns = INT64_MAX;
        pipeline->decoder.has_plugin = broker_kind == BROKER_WITH_PLUGIN;
        pipeline_admit_early_messages(pipeline);
        pipeline_apply_policy(pipeline, now);
        pipeline->callbacks.serving(pipeline->callbacks.userdata, broker_kind);
}

static void serve_plain(struct pipeline *pipeline, bool all_have_disconnected, struct now now) {
        struct event all_disconnected = { .type = EVENT_ALL_DISCONNECTED };

        if (all_have_disconnected)
                pipeline_step(pipeline, &all_disconnected, now);
        else if (pipeline->persistence_at_restart != PERSISTENCE_ALL &&
                 engine_stats(pipeline->engine).n_registrations > 0)
                log_warning("keys that were not stored are lost; clients that watch these keys are not "
                            "notified, because the store cannot disconnect clients without the plugin");
        serve(pipeline, BROKER_PLAIN, now);
}

/*
 * Repeat HELLO. The broker drops WELCOME if the queue of the store's session is full, and clients can keep it full. The store
 * must not serve the broker as a plain broker meanwhile: any client could send requests as another client.
 */
void companion_welcome_timed_out(struct pipeline *pipeline, struct now now) {
        if (pipeline->hello.state == HELLO_ACKNOWLEDGED)
                log_warning("the plugin in the broker does not reply yet: the store waits for it");
        pipeline->hello.state = HELLO_PENDING;
        pipeline->hello.deadline_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
}

void companion_extend_welcome_timeout(struct pipeline *pipeline, struct now now) {
        int64_t until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;

        if (pipeline->hello.state == HELLO_ACKNOWLEDGED)
                pipeline->hello.deadline_ns = until_ns < pipeline->hello.deadline_max_ns
                                                      ? until_ns
                                                      : pipeline->hello.deadline_max_ns;
}

void pipeline_plugin_detected(struct pipeline *pipeline) {
        pipeline->is_plugin_detected = true;
}

/*
 * Return true if companion_send_hello() has not detected the required plugin. Its banner may still arrive: it may wait behind
 * other messages in the store's session.
 */
static bool is_plugin_awaited(const struct pipeline *pipeline) {
        return pipeline->is_connected && pipeline->broker_kind == BROKER_UNKNOWN &&
               pipeline->hello.state == HELLO_NONE;
}

void companion_receive_banner(struct pipeline *pipeline, const struct message *message, struct now now) {
        (void)now;
        pipeline->is_plugin_detected = slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
        if (!pipeline->is_plugin_detected)
                log_warning("the plugin in the broker has another version, so the store does not use it: "
                            "load the plugin of this version of statestored");
        else if (is_plugin_awaited(pipeline))
                pipeline->hello.state = HELLO_PENDING;
}

void companion_receive_delivered(struct pipeline *pipeline, const struct message *message, struct now now) {
        uint64_t sequence;

        companion_extend_welcome_timeout(pipeline, now);
        if (parse_uint64(message->payload, &sequence) == 0)
                notifications_delivered(pipeline, sequence);
}

void companion_receive_slow_watcher(struct pipeline *pipeline, const struct message *message,
                                    struct now now) {
        (void)now;
        pipeline->counters.n_slow_watchers++;
        client_log_slow_watcher(&pipeline->client_log, pipeline->engine, message->payload);
}

void companion_receive_takeover(struct pipeline *pipeline, const struct message *message, struct now now) {
        (void)message;
        (void)now;
        log_limited(&pipeline->takeover_limit, LOG_ERROR,
                    "another statestored serves this broker, too: the two disconnect each other repeatedly; "
                    "stop one of them");
}

static struct slice hello_correlation(const struct pipeline *pipeline) {
        return (struct slice){ (const uint8_t *)pipeline->hello.correlation.text,
                               pipeline->hello.correlation.length };
}

/*
 * Disconnect the clients whose registrations the store may not have, and remove their connections from the list. Returns the
 * new length of the list. The clients must register again. They are:
 * - clients that the plugin tracks and for which the store has no registrations: the registrations ended while the store
 *   served another broker, or while the plugin did not reply;
 * - clients that watch a key that the last restart may have lost.
 */
static size_t disconnect_stale(struct pipeline *pipeline, uint64_t *connections, size_t n_connections) {
        size_t n_retained = 0;

        for (size_t i = 0; i < n_connections; i++) {
                if (engine_has_registrations(pipeline->engine, connections[i]) &&
                    !persistence_lost_watched_key(pipeline->engine, pipeline->persistence_at_restart,
                                                  connections[i]))
                        connections[n_retained++] = connections[i];
                else if (effects_reserve_track(&pipeline->batch.effects) == 0)
                        effects_track(&pipeline->batch.effects, connections[i], DISCONNECT_CONNECTION);
                else
                        pipeline_count_out_of_memory(pipeline);
        }
        pipeline->persistence_at_restart = PERSISTENCE_ALL;
        return n_retained;
}

static int open_welcome(const struct pipeline *pipeline, struct slice box, struct welcome *ret_welcome) {
        CLEANUP(cleanup_free) uint8_t *text = malloc(box.length + 1);
        size_t length;
        int r;

        if (!text)
                return -ENOMEM;
        r = companion_box_open(box, pipeline->hello.key, text, &length);
        if (r < 0)
                return r;

        r = welcome_read((struct slice){ text, length }, ret_welcome);
        sodium_memzero(text, box.length);
        return r;
}

static void take_welcome(struct pipeline *pipeline, struct welcome *welcome, struct now now) {
        struct event retained = { .type = EVENT_CONNECTIONS_RETAINED, .connections = welcome->connections };

        /* Store the key with the next commit: after a restart of the broker, requests that wait in the session need it. */
        if (identity_set_key(&pipeline->key_states, welcome->key))
                pipeline->commit.is_requested = true;
        pipeline->is_guarded = welcome->is_guarded;
        outbox_deliver(&pipeline->outbox, welcome->delivered);
        retained.n_connections = disconnect_stale(pipeline, welcome->connections, welcome->n_connections);
        pipeline_step(pipeline, &retained, now);
        serve(pipeline, BROKER_WITH_PLUGIN, now);
        /* After serve(), which verifies the early messages: the sequence of WELCOME is above theirs. */
        identity_skip_to(&pipeline->key_states, welcome->sequence);
}

/* Ask the caller to reconnect with a random client id. Returns false if the caller keeps its client id. */
static bool change_client_id(struct pipeline *pipeline) {
        if (!pipeline->callbacks.change_client_id ||
            !pipeline->callbacks.change_client_id(pipeline->callbacks.userdata,
                                                  pipeline->next_client_suffix))
                return false;

        memcpy(pipeline->client_suffix, pipeline->next_client_suffix, sizeof(pipeline->client_suffix));
        pipeline->commit.is_requested = true;
        return true;
}

void companion_receive_welcome(struct pipeline *pipeline, const struct message *message, struct now now) {
        CLEANUP(welcome_deinit) struct welcome welcome = { 0 };

        if (!pipeline->is_plugin_detected || pipeline->hello.state == HELLO_PENDING ||
            !pipeline_batch_is_open(pipeline))
                return; /* no HELLO awaits a reply, or a batch is in flight: ignore WELCOME */
        if (!slice_equal(message->correlation_data, hello_correlation(pipeline)))
                return; /* the reply to an earlier HELLO */
        if (open_welcome(pipeline, message->payload, &welcome) < 0) {
                log_error("cannot read WELCOME of the plugin in the broker: load the plugin of this version "
                          "of statestored");
                return;
        }
        if (!welcome.is_guarded && welcome.may_change_client_id && change_client_id(pipeline))
                return; /* the next connection sends HELLO again */
        take_welcome(pipeline, &welcome, now);
}

/* Log that the broker lacks the required plugin: once, until a connection on which the plugin is detected. */
static void log_plugin_missing(struct pipeline *pipeline) {
        if (!pipeline->is_plugin_missing_logged)
                log_error("the broker does not show the plugin, and require-plugin is on: load "
                          "mosquitto_statestore.so in the broker, before other plugins; the store waits for "
                          "it");
        pipeline->is_plugin_missing_logged = true;
}

/*
 * Send HELLO after all TRACK messages of earlier batches. Otherwise WELCOME might not list a connection whose TRACK was not
 * sent yet, and the store would end its registrations.
 */
void companion_send_hello(struct pipeline *pipeline, struct now now) {
        uint8_t payload[sizeof(pipeline->hello.key) + sizeof(pipeline->hello.instance_id)];
        size_t instance_length = strlen(pipeline->hello.instance_id);
        struct message hello = { .topic = SLICE_LITERAL(COMPANION_HELLO),
                                 .payload = { payload, sizeof(pipeline->hello.key) + instance_length },
                                 .qos = 1 };

        pipeline->hello.correlation = companion_number_pair(pipeline->hello.run, ++pipeline->hello.n_hellos);
        hello.correlation_data = hello_correlation(pipeline);
        companion_hello_key(pipeline->hello.secret, hello.correlation_data, pipeline->hello.key);
        memcpy(payload, pipeline->hello.key, sizeof(pipeline->hello.key));
        memcpy(payload + sizeof(pipeline->hello.key), pipeline->hello.instance_id, instance_length);
        if (pipeline->is_plugin_detected) {
                bool is_sent = publish_message(pipeline, &hello, &pipeline->hello.message_id) == 0;

                pipeline->is_plugin_missing_logged = false;
                pipeline->hello.state = is_sent ? HELLO_SENT : HELLO_DROPPED;
                pipeline->hello.deadline_ns = is_sent ? INT64_MAX : now.mono_ns + WELCOME_TIMEOUT_NS;
                pipeline->hello.deadline_max_ns = INT64_MAX;
                return;
        }

        if (pipeline->requires_plugin) {
                log_plugin_missing(pipeline);
                pipeline->hello.state = HELLO_NONE;
                return;
        }

        /* If the session or the plugin has disappeared, the broker was restarted: all connections have ended. */
        serve_plain(pipeline,
                    !pipeline->is_session_present || pipeline->last_broker_kind == BROKER_WITH_PLUGIN, now);
}

void pipeline_connected(struct pipeline *pipeline, bool session_present, struct now now) {
        pipeline->is_connected = true;
        pipeline->counters.n_connections++;
        pipeline->hello.state = HELLO_PENDING;
        pipeline->is_session_present = session_present;
        pipeline_flush(pipeline, now);
}

void pipeline_disconnected(struct pipeline *pipeline) {
        pipeline->is_connected = false;
        pipeline->broker_kind = BROKER_UNKNOWN;
        pipeline->is_plugin_detected = false;
        pipeline->hello.state = HELLO_NONE;
        pipeline->hello.deadline_ns = INT64_MAX;
        pipeline->delivered_deadline_ns = INT64_MAX;
}

static void note_hello_acknowledged(struct pipeline *pipeline, uint16_t id, struct now now) {
        if (pipeline->hello.state != HELLO_SENT || id != pipeline->hello.message_id)
                return;

        pipeline->hello.state = HELLO_ACKNOWLEDGED;
        pipeline->hello.deadline_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
        pipeline->hello.deadline_max_ns = now.mono_ns + WELCOME_TIMEOUT_MAX_NS;
}

/* Ignore no_subscriber while the batch is not open: the PUBACK of the next notification reports it again. */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now) {
        struct event notified = { .type = no_subscriber ? EVENT_NOT_DELIVERED : EVENT_DELIVERED };

        pipeline->n_acknowledged++;
        notifications_acknowledged(pipeline);
        note_hello_acknowledged(pipeline, id, now);
        notified.registration = inflight_take(&pipeline->inflight, id);
        if (notified.registration && pipeline->broker_kind == BROKER_PLAIN &&
            pipeline_batch_is_open(pipeline))
                pipeline_step(pipeline, &notified, now);
        registration_unref(notified.registration);
}
