/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/topics.h"
#include "proto/invocation.h"

/* A batch that notifies this often is published before it grows further. */
#define BATCH_NOTIFICATIONS_MAX 10000

#define NS_PER_S INT64_C(1000000000)

/* Where an answer goes. Its texts lie in the batch's buffer, each followed by a NUL. */
struct envelope {
        size_t response_topic_offset;
        size_t response_topic_length;
        size_t correlation_offset;
        size_t correlation_length;
        bool has_correlation;
        bool has_expiry;
        uint32_t expiry_s; /* what was left when it arrived */
        int64_t arrived_ns;
};

struct daemon {
        struct engine *engine;
        struct daemon_outlet outlet;
        struct encoder encoder;
        struct daemon_counters counters;
        struct log_limit unanswerable_limit, publish_limit, memory_limit;

        /* the batch: an envelope for each of the effects' replies */
        struct effects effects;
        struct envelope *envelopes;
        size_t n_envelopes, envelopes_capacity;
        struct buf texts;
};

static void daemon_cleanup(struct daemon **daemon) {
        daemon_free(*daemon);
}

int daemon_new(struct daemon **ret_daemon, const struct daemon_config *config,
               const struct daemon_outlet *outlet) {
        CLEANUP(daemon_cleanup) struct daemon *daemon = calloc(1, sizeof(*daemon));
        int r;

        if (!daemon)
                return -ENOMEM;

        daemon->outlet = *outlet;
        daemon->encoder = (struct encoder){ .dialect = config->dialect, .node_id = config->node_id };
        r = engine_new(&daemon->engine, &config->engine);
        if (r < 0)
                return r;

        *ret_daemon = take_ptr(&daemon);
        return 0;
}

struct daemon *daemon_free(struct daemon *daemon) {
        if (!daemon)
                return NULL;

        effects_deinit(&daemon->effects);
        engine_free(daemon->engine);
        encoder_deinit(&daemon->encoder);
        buf_deinit(&daemon->texts);
        free(daemon->envelopes);
        free(daemon);
        return NULL;
}

/* 1. In */

static size_t keep_text(struct daemon *daemon, struct slice text) {
        size_t offset = daemon->texts.length;

        buf_append_slice(&daemon->texts, text);
        buf_append(&daemon->texts, "", 1);
        return offset;
}

static bool is_over(const struct envelope *envelope, int64_t now_ns) {
        return envelope->has_expiry && (now_ns - envelope->arrived_ns) / NS_PER_S >= envelope->expiry_s;
}

/* Makes room for one more answer and keeps where it goes. Returns 0 or -ENOMEM. */
static int keep_envelope(struct daemon *daemon, const struct message *message, int64_t now_ns) {
        size_t n_bytes_before = daemon->texts.length;
        struct envelope envelope;
        int r;

        r = array_reserve((void **)&daemon->envelopes, &daemon->envelopes_capacity, daemon->n_envelopes + 1,
                          sizeof(*daemon->envelopes));
        if (r < 0)
                return r;

        envelope = (struct envelope){
                .response_topic_offset = keep_text(daemon, message->response_topic),
                .response_topic_length = message->response_topic.length,
                .correlation_offset = keep_text(daemon, message->correlation_data),
                .correlation_length = message->correlation_data.length,
                .has_correlation = message->correlation_data.data,
                .has_expiry = message->has_expiry,
                .expiry_s = message->expiry_s,
                .arrived_ns = now_ns,
        };
        if (buf_failed(&daemon->texts)) {
                daemon->texts.length = n_bytes_before;
                daemon->texts.failed = false;
                return -ENOMEM;
        }

        daemon->envelopes[daemon->n_envelopes++] = envelope;
        return 0;
}

static struct envelope *last_envelope(struct daemon *daemon) {
        return &daemon->envelopes[daemon->n_envelopes - 1];
}

/* Puts what the envelope says into an answer. */
static void address(const struct daemon *daemon, const struct envelope *envelope, int64_t now_ns,
                    struct message *message) {
        const uint8_t *texts = daemon->texts.data;

        message->topic =
                (struct slice){ texts + envelope->response_topic_offset, envelope->response_topic_length };
        if (envelope->has_correlation)
                message->correlation_data =
                        (struct slice){ texts + envelope->correlation_offset, envelope->correlation_length };
        message->has_expiry = envelope->has_expiry;
        if (envelope->has_expiry)
                message->expiry_s =
                        envelope->expiry_s - (uint32_t)((now_ns - envelope->arrived_ns) / NS_PER_S);
}

static int publish(struct daemon *daemon, const struct message *message) {
        int r = daemon->outlet.publish(daemon->outlet.userdata, message);

        if (r < 0) {
                daemon->counters.n_dropped++;
                log_limited(&daemon->publish_limit, LOG_WARNING, "a message to \"%s\" was dropped: %s",
                            LOG_TEXT(message->topic),
                            r == -EAGAIN ? "too many are waiting for the broker" : strerror(-r));
        }
        return r;
}

static void drop_for_memory(struct daemon *daemon) {
        daemon->counters.n_dropped++;
        log_limited(&daemon->memory_limit, LOG_ERROR, "out of memory: a message was dropped");
}

/* A wrong envelope is answered at once: it is rare, and no change hangs on it. */
static void answer_fault(struct daemon *daemon, const struct invocation *invocation, int64_t now_ns) {
        struct message answer;

        if (encoder_fault(&daemon->encoder, invocation->fault, invocation->fault_value, &answer) < 0) {
                drop_for_memory(daemon);
        } else {
                address(daemon, last_envelope(daemon), now_ns, &answer);
                publish(daemon, &answer);
        }
        daemon->n_envelopes--;
}

static int answer_error(struct daemon *daemon, enum outcome outcome) {
        int r;

        r = effects_reserve_reply(&daemon->effects);
        if (r < 0)
                return r;

        effects_reply(&daemon->effects)->outcome = outcome;
        return 0;
}

static int execute(struct daemon *daemon, const struct request *request, struct now now) {
        struct event event = { .type = EVENT_REQUEST, .request = request };

        daemon->counters.n_requests++;
        return engine_step(daemon->engine, &event, now, &daemon->effects);
}

static void receive_answerable(struct daemon *daemon, const struct message *message,
                               const struct invocation *invocation, struct now now) {
        int r;

        r = keep_envelope(daemon, message, now.mono_ns);
        if (r < 0) {
                drop_for_memory(daemon);
                return;
        }
        if (is_over(last_envelope(daemon), now.mono_ns)) {
                daemon->counters.n_expired++;
                daemon->n_envelopes--;
                return;
        }

        if (invocation->fault != ENVELOPE_OK || invocation->outcome != OUTCOME_DONE)
                daemon->counters.n_refused++;
        if (invocation->fault != ENVELOPE_OK) {
                answer_fault(daemon, invocation, now.mono_ns);
                return;
        }

        r = invocation->outcome == OUTCOME_DONE ? execute(daemon, &invocation->request, now)
                                                : answer_error(daemon, invocation->outcome);
        if (r < 0) {
                daemon->n_envelopes--;
                drop_for_memory(daemon);
        }
}

void daemon_receive(struct daemon *daemon, const struct message *message, struct now now) {
        struct invocation invocation;

        switch (invocation_decode(message, &invocation)) {
        case INVOCATION_NO_RESPONSE_TOPIC:
                daemon->counters.n_unanswerable++;
                log_limited(&daemon->unanswerable_limit, LOG_WARNING,
                            "a request from client \"%s\" has no response topic; not executed",
                            LOG_TEXT(invocation.request.client));
                return;
        case INVOCATION_BAD_RESPONSE_TOPIC:
                daemon->counters.n_unanswerable++;
                log_limited(&daemon->unanswerable_limit, LOG_WARNING,
                            "a request from client \"%s\" has the response topic \"%s\", which is not "
                            "allowed; not executed",
                            LOG_TEXT(invocation.request.client), LOG_TEXT(message->response_topic));
                return;
        case INVOCATION_REFUSED:
        case INVOCATION_REQUEST:
                receive_answerable(daemon, message, &invocation, now);
                break;
        }

        if (daemon->effects.n_notifications > BATCH_NOTIFICATIONS_MAX)
                daemon_flush(daemon, now);
}

static void step(struct daemon *daemon, struct event event, struct now now) {
        if (engine_step(daemon->engine, &event, now, &daemon->effects) < 0)
                log_limited(&daemon->memory_limit, LOG_ERROR, "out of memory: expiry is late");
}

void daemon_tick(struct daemon *daemon, struct now now) {
        step(daemon, (struct event){ .type = EVENT_TICK }, now);
        daemon_flush(daemon, now);
}

void daemon_session_lost(struct daemon *daemon, struct now now) {
        step(daemon, (struct event){ .type = EVENT_ALL_LEFT }, now);
}

/* 2. Out */

static void publish_reply(struct daemon *daemon, size_t i, int64_t now_ns) {
        const struct envelope *envelope = &daemon->envelopes[i];
        struct message answer;

        if (is_over(envelope, now_ns)) {
                daemon->counters.n_expired++;
                return;
        }
        if (encoder_reply(&daemon->encoder, &daemon->effects.replies[i], &answer) < 0) {
                drop_for_memory(daemon);
                return;
        }

        address(daemon, envelope, now_ns, &answer);
        publish(daemon, &answer);
}

/* Notifications of one change follow each other: what they have in common is encoded once. */
static void publish_notifications(struct daemon *daemon) {
        const struct effects *effects = &daemon->effects;
        size_t encoded = SIZE_MAX;
        struct message message;

        for (size_t i = 0; i < effects->n_notifications; i++) {
                const struct notification *notification = &effects->notifications[i];
                const struct registration *registration = notification->registration;

                if (notification->change != encoded &&
                    encoder_notification(&daemon->encoder, &effects->changes[notification->change],
                                         &message) < 0) {
                        drop_for_memory(daemon);
                        continue;
                }

                encoded = notification->change;
                message.topic =
                        (struct slice){ (const uint8_t *)registration->topic, registration->topic_length };
                if (publish(daemon, &message) == 0)
                        daemon->counters.n_notifications++;
        }
}

void daemon_flush(struct daemon *daemon, struct now now) {
        for (size_t i = 0; i < daemon->effects.n_replies; i++)
                publish_reply(daemon, i, now.mono_ns);
        publish_notifications(daemon);

        effects_reset(&daemon->effects);
        daemon->n_envelopes = 0;
        buf_reset(&daemon->texts);
}

int64_t daemon_next_deadline(const struct daemon *daemon) {
        return engine_next_deadline(daemon->engine);
}

const struct daemon_counters *daemon_counters(const struct daemon *daemon) {
        return &daemon->counters;
}
