/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "common/broker_side.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "common/topics.h"
#include "inbox.h"
#include "proto/broker_messages.h"
#include "proto/invocation.h"

/* A batch that has grown to this is published before anything is added. */
#define BATCH_REPLIES_MAX       1000
#define BATCH_NOTIFICATIONS_MAX 10000

/* How long the plugin may take to welcome us. */
#define WELCOME_TIMEOUT_NS INT64_C(2000000000)

struct daemon {
        struct engine *engine;
        struct outlet outlet;
        struct daemon_callbacks callbacks;
        struct encoder encoder;
        struct counters counters;
        struct publisher publisher;
        struct log_limit refused_limit, waiting_limit;

        struct inbox inbox;
        struct batch batch;
        bool is_publishing; /* the batch waits for room: nothing may be added to it */

        enum broker_side side, last_side;
        bool is_plugin_seen;
        int64_t welcome_until_ns; /* INT64_MAX: not asked */
        char seal[BROKER_SIDE_SEAL_LENGTH];
        const char *instance_id;
        const char *presence_topic;

        /* plain brokers: whose notification a message id is; made with the first one */
        struct registration **notified;
};

#define N_MESSAGE_IDS 65536

static void daemon_cleanup(struct daemon **daemon) {
        daemon_free(*daemon);
}

static void remember_notified(void *userdata, struct registration *registration, uint16_t id);

int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config, const struct outlet *outlet,
               const struct daemon_callbacks *callbacks) {
        CLEANUP(daemon_cleanup) struct daemon *daemon = calloc(1, sizeof(*daemon));
        int r;

        if (!daemon)
                return -ENOMEM;

        daemon->outlet = *outlet;
        daemon->callbacks = *callbacks;
        daemon->encoder = (struct encoder){ .dialect = config->dialect, .node_id = config->node_id };
        daemon->publisher = (struct publisher){
                .outlet = &daemon->outlet,
                .encoder = &daemon->encoder,
                .counters = &daemon->counters,
                .notified = remember_notified,
                .userdata = daemon,
        };
        daemon->welcome_until_ns = INT64_MAX;
        daemon->instance_id = config->instance_id;
        daemon->presence_topic = config->presence_topic;
        r = engine_new(&daemon->engine, &config->engine);
        if (r < 0)
                return r;

        *ret_daemon = take_ptr(&daemon);
        return 0;
}

static void forget_notified(struct daemon *daemon) {
        if (!daemon->notified)
                return;

        for (size_t i = 0; i < N_MESSAGE_IDS; i++)
                registration_unref(daemon->notified[i]);
        free(daemon->notified);
        daemon->notified = NULL;
}

struct daemon *daemon_free(struct daemon *daemon) {
        if (!daemon)
                return NULL;

        forget_notified(daemon);
        inbox_deinit(&daemon->inbox);
        batch_deinit(&daemon->batch);
        engine_free(daemon->engine);
        encoder_deinit(&daemon->encoder);
        free(daemon);
        return NULL;
}

/* 1. Requests */

static int step(struct daemon *daemon, const struct event *event, struct now now) {
        return engine_step(daemon->engine, event, now, &daemon->batch.effects);
}

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

static struct slice seal(const struct daemon *daemon) {
        return daemon->side == BROKER_SIDE_PROVEN
                       ? (struct slice){ (const uint8_t *)daemon->seal, sizeof(daemon->seal) }
                       : (struct slice){ 0 };
}

static void execute(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                    struct now now) {
        struct invocation invocation;

        switch (invocation_decode(message, seal(daemon), &invocation)) {
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

static bool is_batch_full(const struct daemon *daemon) {
        return daemon->batch.effects.n_replies >= BATCH_REPLIES_MAX ||
               daemon->batch.effects.n_notifications >= BATCH_NOTIFICATIONS_MAX;
}

static bool can_execute(const struct daemon *daemon) {
        return daemon->side != BROKER_SIDE_UNKNOWN && !daemon->is_publishing && !is_batch_full(daemon);
}

static void receive_request(struct daemon *daemon, const struct message *message, struct now now) {
        int r;

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

void daemon_flush(struct daemon *daemon, struct now now) {
        for (;;) {
                daemon->is_publishing = !batch_publish(&daemon->batch, &daemon->publisher, now);
                if (inbox_is_empty(&daemon->inbox) || !can_execute(daemon))
                        return;

                while (!inbox_is_empty(&daemon->inbox) && can_execute(daemon)) {
                        int64_t arrived_ns;
                        const struct message *message = inbox_first(&daemon->inbox, &arrived_ns);

                        execute(daemon, message, arrived_ns, now);
                        inbox_drop(&daemon->inbox);
                }
        }
}

/* 2. The broker's side */

static void serve(struct daemon *daemon, enum broker_side side) {
        daemon->side = side;
        daemon->last_side = side;
        daemon->welcome_until_ns = INT64_MAX;
        daemon->publisher.direct = side == BROKER_SIDE_PROVEN;
        daemon->publisher.notified = side == BROKER_SIDE_PROVEN ? NULL : remember_notified;
        daemon->callbacks.serving(daemon->callbacks.userdata, side);
}

static void serve_plain(struct daemon *daemon, bool session_kept, struct now now) {
        struct event all_left = { .type = EVENT_ALL_LEFT };

        /* without our session the broker was started anew, and with its connections ended what hung on them */
        if (!session_kept || daemon->last_side == BROKER_SIDE_PROVEN)
                step(daemon, &all_left, now);
        serve(daemon, BROKER_SIDE_PLAIN);
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
        daemon->welcome_until_ns = INT64_MAX;
}

static void receive_welcome(struct daemon *daemon, struct slice payload, struct now now) {
        CLEANUP(cleanup_free) uint64_t *connections = NULL;
        struct event kept = { .type = EVENT_CONNECTIONS_KEPT };
        struct slice new_seal;

        if (daemon->welcome_until_ns == INT64_MAX)
                return; /* not asked, or too late */
        if (welcome_read(payload, &new_seal, &connections, &kept.n_connections) < 0) {
                log_error("the plugin in the broker says what we cannot read: is it of another version?");
                return;
        }

        memcpy(daemon->seal, new_seal.data, sizeof(daemon->seal));
        kept.connections = connections;
        step(daemon, &kept, now);
        serve(daemon, BROKER_SIDE_PROVEN);
}

static void receive_left(struct daemon *daemon, struct slice payload, struct now now) {
        struct event left = { .type = EVENT_CONNECTION_LEFT };

        if (parse_uint64(payload, &left.connection) == 0)
                step(daemon, &left, now);
}

static void receive_presence(struct daemon *daemon, const struct message *message, struct now now) {
        struct event left = { .type = EVENT_CLIENT_LEFT };

        if (daemon->presence_topic && daemon->side == BROKER_SIDE_PLAIN &&
            topic_match_client(message->topic, slice_from_string(daemon->presence_topic), &left.client))
                step(daemon, &left, now);
}

static bool is_topic(const struct message *message, const char *topic) {
        return slice_equal(message->topic, slice_from_string(topic));
}

void daemon_receive(struct daemon *daemon, const struct message *message, struct now now) {
        if (is_topic(message, TOPIC_INVOKE))
                receive_request(daemon, message, now);
        else if (is_topic(message, BROKER_SIDE_PLUGIN))
                daemon->is_plugin_seen = slice_equal(message->payload, SLICE_LITERAL(BROKER_SIDE_VERSION));
        else if (is_topic(message, BROKER_SIDE_WELCOME))
                receive_welcome(daemon, message->payload, now);
        else if (is_topic(message, BROKER_SIDE_LEFT))
                receive_left(daemon, message->payload, now);
        else
                receive_presence(daemon, message, now);
}

/* 3. Who got a notification: on a plain broker the only hint of who is still there. */

static void remember_notified(void *userdata, struct registration *registration, uint16_t id) {
        struct daemon *daemon = userdata;

        if (!daemon->notified)
                daemon->notified = calloc(N_MESSAGE_IDS, sizeof(*daemon->notified));
        if (!daemon->notified)
                return; /* a hint less */

        registration_unref(daemon->notified[id]);
        daemon->notified[id] = registration_ref(registration);
}

void daemon_acknowledged(struct daemon *daemon, uint16_t id, bool no_subscriber, struct now now) {
        struct event not_delivered = { .type = EVENT_NOT_DELIVERED };

        if (!daemon->notified || !daemon->notified[id])
                return;

        not_delivered.registration = daemon->notified[id];
        if (no_subscriber && daemon->side == BROKER_SIDE_PLAIN)
                step(daemon, &not_delivered, now);
        daemon->notified[id] = registration_unref(daemon->notified[id]);
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

        /* what expires while the batch waits for room has to wait too; nobody sees it meanwhile */
        if (!daemon->is_publishing && step(daemon, &tick, now) < 0)
                publisher_lost(&daemon->publisher);
        daemon_flush(daemon, now);
}

int64_t daemon_next_deadline(const struct daemon *daemon) {
        int64_t engine = daemon->is_publishing ? INT64_MAX : engine_next_deadline(daemon->engine);

        return engine < daemon->welcome_until_ns ? engine : daemon->welcome_until_ns;
}

bool daemon_is_idle(const struct daemon *daemon) {
        return inbox_is_empty(&daemon->inbox) && !daemon->is_publishing;
}

size_t daemon_n_waiting_bytes(const struct daemon *daemon) {
        return daemon->inbox.n_bytes;
}

const struct counters *daemon_counters(const struct daemon *daemon) {
        return &daemon->counters;
}
