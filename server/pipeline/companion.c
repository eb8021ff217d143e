/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store's side of the companion protocol (common/protocol/companion.h). After HELLO and
 * WELCOME, the store verifies the senders of requests, and the plugin reports disconnects. broker.c
 * decides whether the store sends HELLO.
 */

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "pipeline/internal.h"
#include "pipeline/verification.h"
#include "protocol/broker_log.h"
#include "protocol/companion_hello.h"

/*
 * Time for WELCOME to arrive after the PUBACK of HELLO. After this timeout, the store sends HELLO
 * again. DELIVERED and each early message restart the timeout, because messages that waited in the
 * session precede WELCOME. WELCOME_TIMEOUT_MAX_NS limits this extension. Before the PUBACK there is
 * no limit: the broker may be slow.
 */
#define WELCOME_TIMEOUT_NS     INT64_C(10000000000)
#define WELCOME_TIMEOUT_MAX_NS INT64_C(60000000000)

/*
 * Acknowledge DISCONNECTED with UNTRACK. If memory is short, send nothing: the plugin repeats
 * DISCONNECTED.
 */
static void acknowledge_disconnect(struct pipeline *pipeline, uint64_t connection) {
        struct effects *effects = &pipeline->batch.effects;

        if (pipeline->broker_kind == BROKER_WITH_PLUGIN && effects_reserve_track(effects) == 0)
                effects_track(effects, connection, UNTRACK_CONNECTION);
}

void companion_execute_disconnected(struct pipeline *pipeline, const struct message *message,
                                    struct now now) {
        struct event closed = { .type = EVENT_CONNECTION_CLOSED };

        if (parse_uint64(message->payload, &closed.connection) == 0 &&
            pipeline_step(pipeline, &closed, now) == 0)
                acknowledge_disconnect(pipeline, closed.connection);
}

/*
 * Repeat HELLO. The broker drops WELCOME if the queue of the store's session is full, and clients
 * can keep it full. The store must not serve the broker as a plain broker meanwhile: any client
 * could send requests as another client.
 */
void companion_welcome_timed_out(struct pipeline *pipeline, struct now now) {
        if (pipeline->hello.state == HELLO_ACKNOWLEDGED)
                log_warning("the plugin in the broker does not reply yet: the store waits for it");
        pipeline->hello.state = HELLO_PENDING;
        /*
         * While HELLO waits for the batch, a deadline in the past would make the caller tick
         * without pause.
         */
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
 * Return true if broker_identify() has not detected the required plugin. Its banner may still
 * arrive: it may wait behind other messages in the store's session.
 */
static bool is_plugin_awaited(const struct pipeline *pipeline) {
        return pipeline->is_connected && pipeline->broker_kind == BROKER_UNKNOWN &&
               pipeline->hello.state == HELLO_NONE;
}

/* Log that the plugin has another version: once, until a plugin of this version is detected. */
static void log_other_version(struct pipeline *pipeline) {
        if (!pipeline->is_other_version_logged)
                log_warning("the plugin in the broker has another version, so the store does not use it: "
                            "load the plugin of this version of statestored");
        pipeline->is_other_version_logged = true;
}

static void receive_banner(struct pipeline *pipeline, const struct message *message, struct now now) {
        (void)now;
        pipeline->is_plugin_detected = slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
        if (!pipeline->is_plugin_detected)
                log_other_version(pipeline);
        else if (is_plugin_awaited(pipeline))
                pipeline->hello.state = HELLO_PENDING;
}

static void receive_delivered(struct pipeline *pipeline, const struct message *message, struct now now) {
        uint64_t sequence;

        companion_extend_welcome_timeout(pipeline, now);
        if (parse_uint64(message->payload, &sequence) == 0)
                notifications_delivered(pipeline, sequence);
}

static void receive_slow_watcher(struct pipeline *pipeline, const struct message *message, struct now now) {
        (void)now;
        pipeline->counters.n_slow_watchers++;
        client_log_slow_watcher(&pipeline->client_log, pipeline->state->engine, message->payload);
}

static void receive_takeover(struct pipeline *pipeline, const struct message *message, struct now now) {
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
 * Kick the clients that the plugin tracks and for which the store has no registrations: the
 * registrations ended while the store served another broker, or while the plugin did not reply.
 * Remove their connections from the list. Returns the new length of the list.
 */
static size_t kick_stale(struct pipeline *pipeline, uint64_t *connections, size_t n_connections) {
        size_t n_retained = 0;

        for (size_t i = 0; i < n_connections; i++) {
                if (engine_registration_of_connection(pipeline->state->engine, connections[i]))
                        connections[n_retained++] = connections[i];
                else if (effects_reserve_track(&pipeline->batch.effects) == 0)
                        effects_track(&pipeline->batch.effects, connections[i], KICK_CONNECTION);
                else
                        pipeline_count_out_of_memory(pipeline);
        }
        return n_retained;
}

static int open_welcome(const struct pipeline *pipeline, struct slice box,
                        struct companion_welcome *ret_welcome) {
        CLEANUP(cleanup_free) uint8_t *text = malloc(box.length + 1);
        size_t length;
        int r;

        if (!text)
                return -ENOMEM;
        r = companion_box_open(box, pipeline->hello.key, text, &length);
        if (r < 0)
                return r;

        r = companion_welcome_read((struct slice){ text, length }, ret_welcome);
        sodium_memzero(text, box.length);
        return r;
}

/*
 * Set the MAC key, and store it with the next commit: if store and broker both restart, requests
 * that wait in the session need it.
 *
 * The sequence that is stored with a new key is 0, not that of WELCOME: early messages with a MAC
 * under this key are executed only after WELCOME, and the broker may deliver them again after a
 * restart. Before WELCOME no request with a MAC under a new key was executed, so sequence 0 lets no
 * executed request be repeated. The exception is a key that the store has lost: see
 * COMPANION_PROPERTY in common/protocol/companion.h.
 */
static void set_mac_key(struct pipeline *pipeline, const uint8_t key[COMPANION_KEY_SIZE]) {
        if (verification_set_key(&pipeline->key_states, key))
                pipeline->commit.is_requested = true;
        verification_set_key(&pipeline->published_key_states, key);
        verification_set_key(&pipeline->acknowledged_key_states, key);
}

static void take_welcome(struct pipeline *pipeline, struct companion_welcome *welcome, struct now now) {
        struct event retained = { .type = EVENT_CONNECTIONS_RETAINED, .connections = welcome->connections };

        set_mac_key(pipeline, welcome->mac_key);
        pipeline->is_guarded = welcome->is_guarded;
        outbox_deliver(&pipeline->outbox, pipeline->state, welcome->delivered);
        retained.n_connections = kick_stale(pipeline, welcome->connections, welcome->n_connections);
        pipeline_step(pipeline, &retained, now);
        broker_serve(pipeline, BROKER_WITH_PLUGIN, now);
        /*
         * After broker_serve(), which verifies the early messages: their sequences are at most that
         * of WELCOME.
         */
        verification_skip_to(&pipeline->key_states, welcome->sequence);
}

static bool is_welcome_awaited(const struct pipeline *pipeline) {
        return pipeline->hello.state == HELLO_SENT || pipeline->hello.state == HELLO_ACKNOWLEDGED;
}

static void receive_welcome(struct pipeline *pipeline, const struct message *message, struct now now) {
        CLEANUP(companion_welcome_deinit) struct companion_welcome welcome = { 0 };
        int r;

        if (!pipeline->is_plugin_detected || !is_welcome_awaited(pipeline) ||
            !pipeline_batch_is_open(pipeline))
                return; /* no HELLO awaits a reply, or a batch is in flight: ignore WELCOME */
        if (!slice_equal(message->correlation_data, hello_correlation(pipeline)))
                return; /* the reply to an earlier HELLO */
        r = open_welcome(pipeline, message->payload, &welcome);
        if (r == -ENOMEM) {
                pipeline_count_out_of_memory(pipeline); /* HELLO is repeated after the timeout */
                return;
        }
        if (r < 0) {
                log_error("cannot read WELCOME of the plugin in the broker: load the plugin of this version "
                          "of statestored");
                return;
        }
        take_welcome(pipeline, &welcome, now);
}

/* The messages that are processed on arrival. receive NULL: the message is ignored. */
static const struct {
        struct slice topic;
        void (*receive)(struct pipeline *pipeline, const struct message *message, struct now now);
} immediate_messages[] = {
        { SLICE_LITERAL(COMPANION_BANNER), receive_banner },
        { SLICE_LITERAL(COMPANION_WELCOME), receive_welcome },
        { SLICE_LITERAL(COMPANION_TAKEOVER), receive_takeover },
        { SLICE_LITERAL(COMPANION_DELIVERED), receive_delivered },
        { SLICE_LITERAL(COMPANION_SLOW_WATCHER), receive_slow_watcher },
        /*
         * The broker's log: only the plugin needs the subscription (COMPANION_SLOW_WATCHER). A
         * plain broker delivers lines.
         */
        { SLICE_LITERAL(BROKER_LOG_NOTICE), NULL },
};

bool companion_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        for (size_t i = 0; i < ARRAY_LENGTH(immediate_messages); i++)
                if (slice_equal(message->topic, immediate_messages[i].topic)) {
                        if (immediate_messages[i].receive)
                                immediate_messages[i].receive(pipeline, message, now);
                        return true;
                }
        return false;
}

/*
 * Send HELLO after all TRACK messages of earlier batches, and execute nothing until WELCOME.
 * Otherwise WELCOME might not list a connection whose TRACK is sent later, and the store would end
 * its registrations.
 */
void companion_send_hello(struct pipeline *pipeline, struct now now) {
        struct hello_exchange *exchange = &pipeline->hello;
        struct companion_hello hello = { .instance_id = slice_from_string(exchange->instance_id) };
        uint8_t payload[COMPANION_HELLO_MAX];
        struct message message = { .topic = SLICE_LITERAL(COMPANION_HELLO), .qos = 1 };
        bool is_sent;

        pipeline->broker_kind = BROKER_UNKNOWN;
        exchange->correlation = companion_number_pair(exchange->run, ++exchange->n_hellos);
        message.correlation_data = hello_correlation(pipeline);
        companion_hello_key(exchange->secret, message.correlation_data, exchange->key);
        memcpy(hello.key, exchange->key, sizeof(hello.key));
        message.payload = (struct slice){ payload, companion_hello_write(&hello, payload) };
        is_sent = publish_message(pipeline, &message, &exchange->message_id) == 0;
        exchange->state = is_sent ? HELLO_SENT : HELLO_DROPPED;
        exchange->deadline_ns = is_sent ? INT64_MAX : now.mono_ns + WELCOME_TIMEOUT_NS;
        exchange->deadline_max_ns = INT64_MAX;
}

void companion_hello_acknowledged(struct pipeline *pipeline, uint16_t id, struct now now) {
        if (pipeline->hello.state != HELLO_SENT || id != pipeline->hello.message_id)
                return;

        pipeline->hello.state = HELLO_ACKNOWLEDGED;
        pipeline->hello.deadline_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
        pipeline->hello.deadline_max_ns = now.mono_ns + WELCOME_TIMEOUT_MAX_NS;
}
