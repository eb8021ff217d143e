/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A batch goes through three stages: it is open and gathers what arrives; it is being stored; it is being published
 * as far as there is room. Only an open one may be added to: what arrives otherwise waits, so nothing is ever
 * executed on top of what may yet fail.
 */

#include "daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "common/broker_side.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "common/topics.h"
#include "inbox.h"
#include "notified.h"
#include "proto/broker_messages.h"
#include "proto/invocation.h"
#include "restore.h"

/* A batch that has grown to this is published before anything is added. */
#define BATCH_REPLIES_MAX       1000
#define BATCH_NOTIFICATIONS_MAX 10000

/* How long the plugin may take to welcome us. */
#define WELCOME_TIMEOUT_NS INT64_C(2000000000)

/* After a commit has failed, what time alone would change waits this long. */
#define RETRY_AFTER_NS INT64_C(1000000000)

struct daemon {
        struct engine *engine;
        struct outlet outlet;
        struct daemon_callbacks callbacks;
        struct encoder encoder;
        struct decoder decoder;
        struct counters counters;
        struct publisher publisher;
        struct notified notified; /* plain brokers */
        struct log_limit refused_limit, waiting_limit, storage_limit;

        struct inbox inbox;
        struct batch batch;
        struct storage_batch stored; /* the batch as storage sees it */
        bool is_storing, is_publishing;
        int64_t tick_from_ns;

        enum broker_side side, last_side;
        bool is_plugin_seen;
        int64_t welcome_until_ns; /* INT64_MAX: not asked */
        char seal[BROKER_SIDE_SEAL_LENGTH];
        char instance_id[BROKER_SIDE_INSTANCE_MAX + 1];
        const char *presence_topic;

        /* what the broker's side has said while the batch was not open */
        bool is_plain_deferred, is_session_kept;
        struct message *deferred_welcome;
};

static void daemon_cleanup(struct daemon **daemon) {
        daemon_free(*daemon);
}

static void remember_notified(void *userdata, struct registration *registration, uint16_t id) {
        struct daemon *daemon = userdata;

        notified_remember(&daemon->notified, registration, id);
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config, const struct outlet *outlet,
               const struct daemon_callbacks *callbacks, struct storage *storage, struct now now) {
        CLEANUP(daemon_cleanup) struct daemon *daemon = calloc(1, sizeof(*daemon));
        struct storage_header header;
        int r;

        if (!daemon)
                return -ENOMEM;

        daemon->outlet = *outlet;
        daemon->callbacks = *callbacks;
        daemon->encoder = (struct encoder){ .dialect = config->dialect, .node_id = config->node_id };
        daemon->decoder = (struct decoder){
                .persistence_name = config->persistence_name,
                .persistence_value = slice_from_string(config->persistence_value),
        };
        daemon->publisher = (struct publisher){
                .outlet = &daemon->outlet,
                .encoder = &daemon->encoder,
                .counters = &daemon->counters,
                .notified = remember_notified,
                .userdata = daemon,
        };
        daemon->welcome_until_ns = INT64_MAX;
        daemon->presence_topic = config->presence_topic;

        r = restore_engine(&daemon->engine, &header, storage, &config->engine, now);
        if (r < 0)
                return r;

        memcpy(daemon->instance_id, header.instance_id, sizeof(header.instance_id));
        *ret_daemon = take_ptr(&daemon);
        return 0;
}

struct daemon *daemon_free(struct daemon *daemon) {
        if (!daemon)
                return NULL;

        free(daemon->deferred_welcome);
        notified_deinit(&daemon->notified);
        inbox_deinit(&daemon->inbox);
        batch_deinit(&daemon->batch);
        engine_free(daemon->engine);
        encoder_deinit(&daemon->encoder);
        free(daemon);
        return NULL;
}

static bool is_open(const struct daemon *daemon) {
        return !daemon->is_storing && !daemon->is_publishing;
}

static int step(struct daemon *daemon, const struct event *event, struct now now) {
        return engine_step(daemon->engine, event, now, &daemon->batch.effects);
}

/* 1. Requests */

static int answer_error(struct daemon *daemon, enum outcome outcome) {
        int r;

        r = effects_reserve_reply(&daemon->batch.effects);
        if (r < 0)
                return r;

        effects_reply(&daemon->batch.effects)->outcome = outcome;
        return 0;
}

static void execute_answerable(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                               const struct invocation *invocation, struct now now) {
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };
        int r;

        r = batch_expect_reply(&daemon->batch, message, arrived_ns);
        if (r < 0) {
                publisher_lost(&daemon->publisher);
                return;
        }
        if (batch_is_over(&daemon->batch, now.mono_ns)) {
                daemon->counters.n_expired++;
                batch_forget_reply(&daemon->batch);
                return;
        }
        if (invocation->fault != ENVELOPE_OK) {
                daemon->counters.n_refused++;
                batch_answer_fault(&daemon->batch, &daemon->publisher, invocation->fault,
                                   invocation->fault_value, now.mono_ns);
                return;
        }

        if (invocation->outcome == OUTCOME_DONE) {
                daemon->counters.n_requests++;
                r = step(daemon, &event, now);
        } else {
                daemon->counters.n_refused++;
                r = answer_error(daemon, invocation->outcome);
        }
        if (r < 0) {
                batch_forget_reply(&daemon->batch);
                publisher_lost(&daemon->publisher);
        }
}

static void execute_request(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                            struct now now) {
        struct invocation invocation;

        switch (invocation_decode(&daemon->decoder, message, &invocation)) {
        case INVOCATION_NO_RESPONSE_TOPIC:
                daemon->counters.n_unanswerable++;
                log_limited(&daemon->refused_limit, LOG_WARNING,
                            "a request from client \"%s\" has no response topic; not executed",
                            LOG_TEXT(invocation.request.client));
                return;
        case INVOCATION_BAD_RESPONSE_TOPIC:
                daemon->counters.n_unanswerable++;
                log_limited(&daemon->refused_limit, LOG_WARNING,
                            "a request from client \"%s\" has the response topic \"%s\", which is not "
                            "allowed; not executed",
                            LOG_TEXT(invocation.request.client), LOG_TEXT(message->response_topic));
                return;
        case INVOCATION_REFUSED:
        case INVOCATION_REQUEST:
                execute_answerable(daemon, message, arrived_ns, &invocation, now);
        }
}

/* 2. The broker's side */

static bool is_topic(const struct message *message, const char *topic) {
        return slice_equal(message->topic, slice_from_string(topic));
}

/* Who has left, as the plugin says it or a presence topic. */
static void execute_departure(struct daemon *daemon, const struct message *message, struct now now) {
        struct event left = { .type = EVENT_CONNECTION_LEFT };

        if (is_topic(message, BROKER_SIDE_LEFT)) {
                if (parse_uint64(message->payload, &left.connection) == 0)
                        step(daemon, &left, now);
                return;
        }

        left.type = EVENT_CLIENT_LEFT;
        if (daemon->presence_topic && daemon->side == BROKER_SIDE_PLAIN &&
            topic_match_client(message->topic, slice_from_string(daemon->presence_topic), &left.client))
                step(daemon, &left, now);
}

static void serve(struct daemon *daemon, enum broker_side side) {
        bool is_proven = side == BROKER_SIDE_PROVEN;

        daemon->side = side;
        daemon->last_side = side;
        daemon->welcome_until_ns = INT64_MAX;
        daemon->decoder.seal =
                is_proven ? (struct slice){ (const uint8_t *)daemon->seal, sizeof(daemon->seal) }
                          : (struct slice){ 0 };
        daemon->publisher.direct = is_proven;
        daemon->publisher.notified = is_proven ? NULL : remember_notified;
        daemon->callbacks.serving(daemon->callbacks.userdata, side);
}

static void serve_plain(struct daemon *daemon, bool session_kept, struct now now) {
        struct event all_left = { .type = EVENT_ALL_LEFT };

        daemon->welcome_until_ns = INT64_MAX;
        daemon->is_plain_deferred = !is_open(daemon);
        daemon->is_session_kept = session_kept;
        if (daemon->is_plain_deferred)
                return;

        /* without our session the broker was started anew, and with its connections ended what hung on them */
        if (!session_kept || daemon->last_side == BROKER_SIDE_PROVEN)
                step(daemon, &all_left, now);
        serve(daemon, BROKER_SIDE_PLAIN);
}

static void receive_welcome(struct daemon *daemon, const struct message *message, struct now now) {
        CLEANUP(cleanup_free) uint64_t *connections = NULL;
        struct event kept = { .type = EVENT_CONNECTIONS_KEPT };
        struct slice seal;

        if (daemon->welcome_until_ns == INT64_MAX)
                return; /* not asked, or too late */
        if (!is_open(daemon)) {
                free(daemon->deferred_welcome);
                daemon->deferred_welcome = message_copy(message);
                return;
        }
        if (welcome_read(message->payload, &seal, &connections, &kept.n_connections) < 0) {
                log_error("the plugin in the broker says what we cannot read: is it of another version?");
                return;
        }

        memcpy(daemon->seal, seal.data, sizeof(daemon->seal));
        kept.connections = connections;
        step(daemon, &kept, now);
        serve(daemon, BROKER_SIDE_PROVEN);
}

static void run_deferred(struct daemon *daemon, struct now now) {
        CLEANUP(cleanup_free) struct message *welcome = take_ptr(&daemon->deferred_welcome);

        if (welcome)
                receive_welcome(daemon, welcome, now);
        if (daemon->is_plain_deferred)
                serve_plain(daemon, daemon->is_session_kept, now);
}

void daemon_up(struct daemon *daemon, bool session_kept, struct now now) {
        struct message hello = {
                .topic = SLICE_LITERAL(BROKER_SIDE_HELLO),
                .payload = slice_from_string(daemon->instance_id),
                .qos = 1,
        };
        uint16_t id;

        if (daemon->is_plugin_seen && publisher_send(&daemon->publisher, &hello, &id) == 0) {
                daemon->welcome_until_ns = now.mono_ns + WELCOME_TIMEOUT_NS;
                return;
        }
        serve_plain(daemon, session_kept, now);
        daemon_flush(daemon, now);
}

void daemon_down(struct daemon *daemon) {
        daemon->side = BROKER_SIDE_UNKNOWN;
        daemon->is_plugin_seen = false;
        daemon->is_plain_deferred = false;
        daemon->welcome_until_ns = INT64_MAX;
}

/* A hint that comes while the batch is not open is left: the next notification gives it again. */
void daemon_acknowledged(struct daemon *daemon, uint16_t id, bool no_subscriber, struct now now) {
        struct event not_delivered = { .type = EVENT_NOT_DELIVERED };

        not_delivered.registration = notified_take(&daemon->notified, id);
        if (not_delivered.registration && no_subscriber && daemon->side == BROKER_SIDE_PLAIN &&
            is_open(daemon))
                step(daemon, &not_delivered, now);
        registration_unref(not_delivered.registration);
}

/* 3. One batch after the other */

static bool can_execute(const struct daemon *daemon) {
        return daemon->side != BROKER_SIDE_UNKNOWN && is_open(daemon) &&
               daemon->batch.effects.n_replies < BATCH_REPLIES_MAX &&
               daemon->batch.effects.n_notifications < BATCH_NOTIFICATIONS_MAX;
}

static void execute(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                    struct now now) {
        if (is_topic(message, TOPIC_INVOKE))
                execute_request(daemon, message, arrived_ns, now);
        else
                execute_departure(daemon, message, now);
}

void daemon_receive(struct daemon *daemon, const struct message *message, struct now now) {
        int r;

        if (is_topic(message, BROKER_SIDE_PLUGIN)) {
                daemon->is_plugin_seen = slice_equal(message->payload, SLICE_LITERAL(BROKER_SIDE_VERSION));
                return;
        }
        if (is_topic(message, BROKER_SIDE_WELCOME)) {
                receive_welcome(daemon, message, now);
                return;
        }
        if (inbox_is_empty(&daemon->inbox) && can_execute(daemon)) {
                execute(daemon, message, now.mono_ns, now);
                return;
        }

        r = inbox_add(&daemon->inbox, message, now.mono_ns, DAEMON_INBOX_MAX);
        if (r == -ENOBUFS) {
                daemon->counters.n_dropped++;
                log_limited(&daemon->waiting_limit, LOG_ERROR,
                            "a request was dropped: %zu bytes of requests wait already",
                            daemon->inbox.n_bytes);
        } else if (r < 0) {
                publisher_lost(&daemon->publisher);
        }
}

/* The commit has ended: the batch is safe, or has not been. */
static void settle(struct daemon *daemon, int result, struct now now) {
        daemon->is_storing = false;
        daemon->batch.is_stored = true;
        if (result == 0)
                return;

        log_limited(&daemon->storage_limit, LOG_ERROR,
                    "%zu changes could not be stored and are taken back: %s", daemon->batch.effects.n_rows,
                    strerror(-result));
        if (engine_undo(daemon->engine, &daemon->batch.effects) < 0 || result == -ESTALE)
                daemon->callbacks.lost(daemon->callbacks.userdata);
        effects_fail(&daemon->batch.effects, result == -ENOSPC ? OUTCOME_DISK_FULL : OUTCOME_STORAGE_FAILED);
        daemon->tick_from_ns = now.mono_ns + RETRY_AFTER_NS;
}

/* False: it is not known yet. */
static bool store(struct daemon *daemon, struct now now) {
        const struct effects *effects = &daemon->batch.effects;
        int r = 0;

        if (effects->n_rows > 0) {
                daemon->stored = (struct storage_batch){
                        .rows = effects->rows,
                        .n_rows = effects->n_rows,
                        .clock = daemon->engine->clock.last,
                        .n_departures = daemon->engine->n_departures,
                        .now = now,
                };
                r = daemon->outlet.commit(daemon->outlet.userdata, &daemon->stored);
        }
        if (r > 0) {
                daemon->is_storing = true;
                return false;
        }
        settle(daemon, r, now);
        return true;
}

void daemon_flush(struct daemon *daemon, struct now now) {
        do {
                if (daemon->is_storing || (!daemon->batch.is_stored && !store(daemon, now)))
                        return;
                daemon->is_publishing = !batch_publish(&daemon->batch, &daemon->publisher, now);
                if (daemon->is_publishing)
                        return;

                run_deferred(daemon, now);
                while (!inbox_is_empty(&daemon->inbox) && can_execute(daemon)) {
                        int64_t arrived_ns;
                        const struct message *message = inbox_first(&daemon->inbox, &arrived_ns);

                        execute(daemon, message, arrived_ns, now);
                        inbox_drop(&daemon->inbox);
                }
        } while (!batch_is_empty(&daemon->batch));
}

void daemon_committed(struct daemon *daemon, int result, struct now now) {
        settle(daemon, result, now);
        daemon_flush(daemon, now);
}

/* 4. Time */

void daemon_tick(struct daemon *daemon, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        if (now.mono_ns >= daemon->welcome_until_ns) {
                log_warning(
                        "the plugin in the broker does not answer us: see its option statestored_client_id "
                        "or statestored_username; going on without it");
                serve_plain(daemon, false, now);
        }
        if (is_open(daemon) && now.mono_ns >= daemon->tick_from_ns && step(daemon, &tick, now) < 0)
                publisher_lost(&daemon->publisher);
        daemon_flush(daemon, now);
}

int64_t daemon_next_deadline(const struct daemon *daemon) {
        int64_t engine = is_open(daemon) ? engine_next_deadline(daemon->engine) : INT64_MAX;

        if (engine < daemon->tick_from_ns)
                engine = daemon->tick_from_ns;
        return engine < daemon->welcome_until_ns ? engine : daemon->welcome_until_ns;
}

bool daemon_is_idle(const struct daemon *daemon) {
        return inbox_is_empty(&daemon->inbox) && is_open(daemon);
}

size_t daemon_n_waiting_bytes(const struct daemon *daemon) {
        return daemon->inbox.n_bytes;
}

const struct counters *daemon_counters(const struct daemon *daemon) {
        return &daemon->counters;
}
