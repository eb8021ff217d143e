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
        struct daemon *daemon = userdata;

        notified_remember(&daemon->notified, registration, id);
}

/* A disconnect, as the plugin or a presence topic tells it. */
void broker_execute_disconnect(struct daemon *daemon, const struct message *message, struct now now) {
        struct event left = { .type = EVENT_CONNECTION_LEFT };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DISCONNECTED))) {
                if (parse_uint64(message->payload, &left.connection) == 0)
                        daemon_step(daemon, &left, now);
                return;
        }

        left.type = EVENT_CLIENT_LEFT;
        if (daemon->presence_topic && daemon->side == BROKER_SIDE_PLAIN &&
            topic_match_client(message->topic, slice_from_string(daemon->presence_topic), &left.client))
                daemon_step(daemon, &left, now);
}

static void serve(struct daemon *daemon, enum broker_side side, struct now now) {
        bool is_proven = side == BROKER_SIDE_PROVEN;

        daemon->side = side;
        daemon->last_side = side;
        daemon->welcome_until_ns = INT64_MAX;
        daemon->decoder.is_proven = is_proven;
        daemon->publisher.direct = is_proven;
        daemon->publisher.notified = is_proven ? NULL : remember_notified;
        daemon_admit_arrivals(daemon);
        daemon_apply_policy(daemon, now);
        daemon->callbacks.serving(daemon->callbacks.userdata, side);
}

static void serve_plain(struct daemon *daemon, bool all_have_left, struct now now) {
        struct event all_left = { .type = EVENT_ALL_LEFT };

        if (all_have_left)
                daemon_step(daemon, &all_left, now);
        else if (daemon->lost_persistence != PERSISTENCE_ALL &&
                 engine_stats(daemon->engine).n_registrations > 0)
                log_warning(
                        "keys that were not stored are lost; without the plugin the clients that watch them "
                        "cannot be disconnected, and are not told");
        serve(daemon, BROKER_SIDE_PLAIN, now);
}

/* What is registered stays: the plugin may still say who is there. */
void broker_give_up_welcome(struct daemon *daemon, struct now now) {
        if (!daemon->is_greeting_taken) {
                daemon->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
                return;
        }
        log_warning("the plugin in the broker does not answer: going on without it until it does");
        serve_plain(daemon, !daemon->is_session_kept, now);
}

void broker_wait_on(struct daemon *daemon, struct now now) {
        int64_t until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;

        if (daemon->welcome_until_ns != INT64_MAX)
                daemon->welcome_until_ns =
                        until_ns < daemon->welcome_latest_ns ? until_ns : daemon->welcome_latest_ns;
}

void broker_receive_banner(struct daemon *daemon, const struct message *message) {
        daemon->is_plugin_seen = slice_equal(message->payload, SLICE_LITERAL(COMPANION_VERSION));
        if (!daemon->is_plugin_seen)
                log_warning("the plugin in the broker is of another version than this: going on without it");
}

void broker_receive_takeover(struct daemon *daemon) {
        log_limited(&daemon->takeover_limit, LOG_ERROR,
                    "another statestored with this client id has taken over the session at this broker, and "
                    "this one has "
                    "taken it back: two of them throw each other out; stop one");
}

static struct slice greeting(const struct daemon *daemon) {
        return (struct slice){ (const uint8_t *)daemon->greeting.text, daemon->greeting.length };
}

/*
 * Disconnect the clients that must register again, and remove their connections from the list. Returns its new length. Two
 * kinds must: clients that the plugin tracks but for which the store has no registrations, since these ended while
 * another broker was served or while the plugin did not answer; and clients that watch a key which the last restart may
 * have lost.
 */
static size_t disconnect_losers(struct daemon *daemon, uint64_t *connections, size_t n_connections) {
        size_t n_kept = 0;

        for (size_t i = 0; i < n_connections; i++) {
                if (engine_has_registrations(daemon->engine, connections[i]) &&
                    !persistence_lost_watched_key(daemon->engine, daemon->lost_persistence, connections[i]))
                        connections[n_kept++] = connections[i];
                else if (effects_reserve_hold(&daemon->batch.effects) == 0)
                        effects_disconnect(&daemon->batch.effects, connections[i]);
                else
                        publisher_lost(&daemon->publisher);
        }
        daemon->lost_persistence = PERSISTENCE_ALL;
        return n_kept;
}

static int open_welcome(const struct daemon *daemon, struct slice box, struct welcome *ret_welcome) {
        CLEANUP(cleanup_free) uint8_t *text = malloc(box.length + 1);
        size_t length;
        int r;

        if (!text)
                return -ENOMEM;
        r = companion_box_open(box, daemon->greeting_key, text, &length);
        if (r < 0)
                return r;

        r = welcome_read((struct slice){ text, length }, ret_welcome);
        sodium_memzero(text, box.length);
        return r;
}

static void take_welcome(struct daemon *daemon, struct welcome *welcome, struct now now) {
        struct event kept = { .type = EVENT_CONNECTIONS_KEPT, .connections = welcome->connections };

        /* requests that wait in the session may need the key after a restart of the broker */
        if (identity_take_key(&daemon->positions, welcome->key))
                daemon->is_commit_due = true;
        daemon->is_guarded = welcome->is_guarded;
        kept.n_connections = disconnect_losers(daemon, welcome->connections, welcome->n_connections);
        daemon_step(daemon, &kept, now);
        serve(daemon, BROKER_SIDE_PROVEN, now);
        identity_end_wait(&daemon->positions, welcome->sequence);
}

void broker_receive_welcome(struct daemon *daemon, const struct message *message, struct now now) {
        CLEANUP(welcome_deinit) struct welcome welcome = { 0 };

        if (!daemon->is_plugin_seen || daemon->is_greeting_due || !daemon_is_open(daemon))
                return; /* not asked; or so late that others have gone on, and it can be left */
        if (!slice_equal(message->correlation_data, greeting(daemon)))
                return; /* the answer to an earlier hello */
        if (open_welcome(daemon, message->payload, &welcome) < 0) {
                log_error("cannot read the welcome of the plugin in the broker: is it of another version?");
                return;
        }
        take_welcome(daemon, &welcome, now);
}

/*
 * Hello comes after all that the batch has to say of connections: a welcome that does not list one whose hold is yet
 * to be said would end what it has registered.
 */
void broker_greet(struct daemon *daemon, struct now now) {
        uint8_t payload[sizeof(daemon->greeting_key) + sizeof(daemon->instance_id)];
        size_t instance_length = strlen(daemon->instance_id);
        struct message hello = { .topic = SLICE_LITERAL(COMPANION_HELLO),
                                 .payload = { payload, sizeof(daemon->greeting_key) + instance_length },
                                 .qos = 1 };

        if (!daemon->is_greeting_due)
                return;

        daemon->is_greeting_due = false;
        daemon->greeting = companion_pair(daemon->run, ++daemon->publisher.last_sequence);
        hello.correlation_data = greeting(daemon);
        companion_hello_key(daemon->companion_secret, hello.correlation_data, daemon->greeting_key);
        memcpy(payload, daemon->greeting_key, sizeof(daemon->greeting_key));
        memcpy(payload + sizeof(daemon->greeting_key), daemon->instance_id, instance_length);
        if (daemon->is_plugin_seen &&
            publisher_send(&daemon->publisher, &hello, &daemon->greeting_id) == 0) {
                daemon->is_greeting_taken = false;
                daemon->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
                daemon->welcome_latest_ns = INT64_MAX;
                return;
        }

        /* without our session the broker was started anew, and with its connections ended what hung on them */
        serve_plain(daemon, !daemon->is_session_kept || daemon->last_side == BROKER_SIDE_PROVEN, now);
}

void daemon_up(struct daemon *daemon, bool session_kept, struct now now) {
        daemon->is_connected = true;
        daemon->counters.n_connections++;
        daemon->is_greeting_due = true;
        daemon->is_session_kept = session_kept;
        daemon_flush(daemon, now);
}

void daemon_down(struct daemon *daemon) {
        daemon->is_connected = false;
        daemon->side = BROKER_SIDE_UNKNOWN;
        daemon->is_plugin_seen = false;
        daemon->is_greeting_due = false;
        daemon->welcome_until_ns = INT64_MAX;
}

static void note_greeting(struct daemon *daemon, uint16_t id, struct now now) {
        if (daemon->welcome_until_ns == INT64_MAX || daemon->is_greeting_taken || id != daemon->greeting_id)
                return;

        daemon->is_greeting_taken = true;
        daemon->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
        daemon->welcome_latest_ns = now.mono_ns + WELCOME_TIMEOUT_MAX_NS;
}

/* A hint that comes while the batch is not open is left: the next notification gives it again. */
void daemon_acknowledged(struct daemon *daemon, uint16_t id, bool no_subscriber, struct now now) {
        struct event not_delivered = { .type = EVENT_NOT_DELIVERED };

        daemon->n_acknowledged++;
        note_greeting(daemon, id, now);
        not_delivered.registration = notified_take(&daemon->notified, id);
        if (not_delivered.registration && no_subscriber && daemon->side == BROKER_SIDE_PLAIN &&
            daemon_is_open(daemon))
                daemon_step(daemon, &not_delivered, now);
        registration_unref(not_delivered.registration);
}
