/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two kinds of broker. One with our plugin proves to have it by its answer to hello, and then says who sends and who
 * has gone. Any other is served at once, on what messages claim and acknowledgements hint.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "codec/companion_messages.h"
#include "codec/identity.h"
#include "engine/persistence.h"
#include "pipeline/internal.h"
#include "protocol/topics.h"

/*
 * How long the plugin may take to welcome us, once the broker has taken hello, after the last thing that we heard, for what
 * waited for us comes before it; and how long at most. Until then a broker that stands still is waited for: whoever
 * registers before it is known that the plugin is there loses that, and the plugin does not know.
 */
#define WELCOME_TIMEOUT_NS     INT64_C(10000000000)
#define WELCOME_TIMEOUT_MAX_NS INT64_C(60000000000)

static void remember_notified(void *userdata, struct registration *registration, uint16_t id) {
        struct pipeline *pipeline = userdata;

        unacknowledged_add(&pipeline->notified, registration, id);
}

/* A disconnect, as the plugin or a presence topic tells it. */
void broker_execute_disconnect(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event disconnected = { .type = EVENT_CONNECTION_CLOSED };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DISCONNECTED))) {
                if (parse_uint64(message->payload, &disconnected.connection) == 0)
                        pipeline_step(pipeline, &disconnected, now);
                return;
        }

        disconnected.type = EVENT_CLIENT_DISCONNECTED;
        if (pipeline->presence_topic && pipeline->broker_kind == BROKER_PLAIN &&
            topic_match_client(message->topic, slice_from_string(pipeline->presence_topic),
                               &disconnected.client))
                pipeline_step(pipeline, &disconnected, now);
}

static void serve(struct pipeline *pipeline, enum broker_kind broker_kind, struct now now) {
        bool is_proven = broker_kind == BROKER_WITH_PLUGIN;

        pipeline->broker_kind = broker_kind;
        pipeline->last_broker_kind = broker_kind;
        pipeline->welcome_until_ns = INT64_MAX;
        pipeline->decoder.is_proven = is_proven;
        pipeline->sender.direct = is_proven;
        pipeline->sender.notified = is_proven ? NULL : remember_notified;
        pipeline_admit_arrivals(pipeline);
        pipeline_apply_policy(pipeline, now);
        pipeline->callbacks.serving(pipeline->callbacks.userdata, broker_kind);
}

static void serve_plain(struct pipeline *pipeline, bool all_have_disconnected, struct now now) {
        struct event all_disconnected = { .type = EVENT_ALL_DISCONNECTED };

        if (all_have_disconnected)
                pipeline_step(pipeline, &all_disconnected, now);
        else if (pipeline->lost_persistence != PERSISTENCE_ALL &&
                 engine_stats(pipeline->engine).n_registrations > 0)
                log_warning(
                        "keys that were not stored are lost; without the plugin the clients that watch them "
                        "cannot be disconnected, and are not told");
        serve(pipeline, BROKER_PLAIN, now);
}

/* What is registered stays: the plugin may still say who is there. */
void companion_give_up_welcome(struct pipeline *pipeline, struct now now) {
        if (!pipeline->is_greeting_taken) {
                pipeline->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
                return;
        }
        log_warning("the plugin in the broker does not answer: going on without it until it does");
        serve_plain(pipeline, !pipeline->is_session_present, now);
}

void companion_wait_on(struct pipeline *pipeline, struct now now) {
        int64_t until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;

        if (pipeline->welcome_until_ns != INT64_MAX)
                pipeline->welcome_until_ns =
                        until_ns < pipeline->welcome_latest_ns ? until_ns : pipeline->welcome_latest_ns;
}

void broker_receive_banner(struct pipeline *pipeline, const struct message *message) {
        pipeline->is_plugin_seen = slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
        if (!pipeline->is_plugin_seen)
                log_warning("the plugin in the broker is of another version than this: going on without it");
}

void broker_receive_takeover(struct pipeline *pipeline) {
        log_limited(&pipeline->takeover_limit, LOG_ERROR,
                    "another statestored with this client id has taken over the session at this broker, and "
                    "this one has "
                    "taken it back: two of them throw each other out; stop one");
}

static struct slice greeting(const struct pipeline *pipeline) {
        return (struct slice){ (const uint8_t *)pipeline->greeting.text, pipeline->greeting.length };
}

/*
 * Disconnect the clients that must register again, and remove their connections from the list. Returns its new length. Two
 * kinds must: clients that the plugin tracks but for which the store has no registrations, since these ended while
 * another broker was served or while the plugin did not answer; and clients that watch a key which the last restart may
 * have lost.
 */
static size_t disconnect_losers(struct pipeline *pipeline, uint64_t *connections, size_t n_connections) {
        size_t n_stored = 0;

        for (size_t i = 0; i < n_connections; i++) {
                if (engine_has_registrations(pipeline->engine, connections[i]) &&
                    !persistence_lost_watched_key(pipeline->engine, pipeline->lost_persistence,
                                                  connections[i]))
                        connections[n_stored++] = connections[i];
                else if (effects_reserve_track(&pipeline->batch.effects) == 0)
                        effects_disconnect(&pipeline->batch.effects, connections[i]);
                else
                        sender_out_of_memory(&pipeline->sender);
        }
        pipeline->lost_persistence = PERSISTENCE_ALL;
        return n_stored;
}

static int open_welcome(const struct pipeline *pipeline, struct slice box, struct welcome *ret_welcome) {
        CLEANUP(cleanup_free) uint8_t *text = malloc(box.length + 1);
        size_t length;
        int r;

        if (!text)
                return -ENOMEM;
        r = companion_box_open(box, pipeline->greeting_key, text, &length);
        if (r < 0)
                return r;

        r = welcome_read((struct slice){ text, length }, ret_welcome);
        sodium_memzero(text, box.length);
        return r;
}

static void take_welcome(struct pipeline *pipeline, struct welcome *welcome, struct now now) {
        struct event retained = { .type = EVENT_CONNECTIONS_RETAINED, .connections = welcome->connections };

        /* requests that wait in the session may need the key after a restart of the broker */
        if (identity_take_key(&pipeline->positions, welcome->key))
                pipeline->is_commit_pending = true;
        pipeline->is_guarded = welcome->is_guarded;
        retained.n_connections = disconnect_losers(pipeline, welcome->connections, welcome->n_connections);
        pipeline_step(pipeline, &retained, now);
        serve(pipeline, BROKER_WITH_PLUGIN, now);
        identity_end_wait(&pipeline->positions, welcome->sequence);
}

/* Have the caller reconnect under a client id that nobody can guess. Returns false where it keeps the client id. */
static bool change_client_id(struct pipeline *pipeline) {
        char suffix[sizeof(pipeline->client_suffix)];
        uint8_t random[STORAGE_CLIENT_SUFFIX_LENGTH / 2];

        if (!pipeline->callbacks.unguarded)
                return false;

        randombytes_buf(random, sizeof(random));
        sodium_bin2hex(suffix, sizeof(suffix), random, sizeof(random));
        if (pipeline->client_suffix[0] != '\0')
                memcpy(suffix, pipeline->client_suffix, sizeof(suffix));
        if (!pipeline->callbacks.unguarded(pipeline->callbacks.userdata, suffix))
                return false;

        memcpy(pipeline->client_suffix, suffix, sizeof(suffix));
        pipeline->is_commit_pending = true;
        return true;
}

void companion_receive_welcome(struct pipeline *pipeline, const struct message *message, struct now now) {
        CLEANUP(welcome_deinit) struct welcome welcome = { 0 };

        if (!pipeline->is_plugin_seen || pipeline->is_greeting_pending || !pipeline_is_open(pipeline))
                return; /* not asked; or so late that others have gone on, and it can be left */
        if (!slice_equal(message->correlation_data, greeting(pipeline)))
                return; /* the answer to an earlier hello */
        if (open_welcome(pipeline, message->payload, &welcome) < 0) {
                log_error("cannot read the welcome of the plugin in the broker: is it of another version?");
                return;
        }
        if (!welcome.is_guarded && welcome.is_client_id_free && change_client_id(pipeline))
                return; /* the next connection says hello again */
        take_welcome(pipeline, &welcome, now);
}

/*
 * Hello comes after all that the batch has to say of connections: a welcome that does not list one whose hold is yet
 * to be said would end what it has registered.
 */
void companion_greet(struct pipeline *pipeline, struct now now) {
        uint8_t payload[sizeof(pipeline->greeting_key) + sizeof(pipeline->instance_id)];
        size_t instance_length = strlen(pipeline->instance_id);
        struct message hello = { .topic = SLICE_LITERAL(COMPANION_HELLO),
                                 .payload = { payload, sizeof(pipeline->greeting_key) + instance_length },
                                 .qos = 1 };

        if (!pipeline->is_greeting_pending)
                return;

        pipeline->is_greeting_pending = false;
        pipeline->greeting = companion_pair(pipeline->run, ++pipeline->sender.last_sequence);
        hello.correlation_data = greeting(pipeline);
        companion_hello_key(pipeline->companion_secret, hello.correlation_data, pipeline->greeting_key);
        memcpy(payload, pipeline->greeting_key, sizeof(pipeline->greeting_key));
        memcpy(payload + sizeof(pipeline->greeting_key), pipeline->instance_id, instance_length);
        if (pipeline->is_plugin_seen &&
            sender_send(&pipeline->sender, &hello, &pipeline->greeting_id) == 0) {
                pipeline->is_greeting_taken = false;
                pipeline->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
                pipeline->welcome_latest_ns = INT64_MAX;
                return;
        }

        /* without our session the broker was started anew, and with its connections ended what hung on them */
        serve_plain(pipeline,
                    !pipeline->is_session_present || pipeline->last_broker_kind == BROKER_WITH_PLUGIN, now);
}

void pipeline_connected(struct pipeline *pipeline, bool session_present, struct now now) {
        pipeline->is_connected = true;
        pipeline->counters.n_connections++;
        pipeline->is_greeting_pending = true;
        pipeline->is_session_present = session_present;
        pipeline_flush(pipeline, now);
}

void pipeline_disconnected(struct pipeline *pipeline) {
        pipeline->is_connected = false;
        pipeline->broker_kind = BROKER_UNKNOWN;
        pipeline->is_plugin_seen = false;
        pipeline->is_greeting_pending = false;
        pipeline->welcome_until_ns = INT64_MAX;
}

static void note_greeting(struct pipeline *pipeline, uint16_t id, struct now now) {
        if (pipeline->welcome_until_ns == INT64_MAX || pipeline->is_greeting_taken ||
            id != pipeline->greeting_id)
                return;

        pipeline->is_greeting_taken = true;
        pipeline->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
        pipeline->welcome_latest_ns = now.mono_ns + WELCOME_TIMEOUT_MAX_NS;
}

/* A hint that comes while the batch is not open is left: the next notification gives it again. */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now) {
        struct event not_delivered = { .type = EVENT_NOT_DELIVERED };

        pipeline->n_acknowledged++;
        note_greeting(pipeline, id, now);
        not_delivered.registration = unacknowledged_take(&pipeline->notified, id);
        if (not_delivered.registration && no_subscriber && pipeline->broker_kind == BROKER_PLAIN &&
            pipeline_is_open(pipeline))
                pipeline_step(pipeline, &not_delivered, now);
        registration_unref(not_delivered.registration);
}
