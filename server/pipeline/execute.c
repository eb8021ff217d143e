/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Process a message from its arrival until its reply is in the batch.
 *
 * While the broker kind is unknown, messages wait as early messages, because the broker kind
 * determines whether requests must be verified. Later, a message is executed on arrival if no other
 * message waits, the quantum is not used up, and the batch may take the message. Otherwise it waits
 * in the inbox.
 */

#include <errno.h>

#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "pipeline/verification.h"
#include "protocol/topics.h"

/*
 * Duration of a quantum. After a quantum, the pipeline returns to its caller, which reads further
 * messages. So a request that arrives behind many requests of another client is executed after a
 * few of them, because the inbox serves the clients in turn. The message that exceeds the limit is
 * completed. With slow storage a quantum lasts as long as the last commit, at most QUANTUM_NS_MAX:
 * with shorter quanta, few requests would share the cost of each commit.
 */
#define QUANTUM_NS     INT64_C(1000000)
#define QUANTUM_NS_MAX INT64_C(10000000)

enum message_kind {
        MESSAGE_REQUEST,
        MESSAGE_CONTROL, /* a request of test control */
        MESSAGE_OTHER,   /* of the plugin or on the presence topic; ignored on any other topic */
};

static enum message_kind kind_of(const struct pipeline *pipeline, const struct message *message) {
        if (slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE)))
                return MESSAGE_REQUEST;
        if (pipeline->hooks && pipeline->hooks->control &&
            slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL)))
                return MESSAGE_CONTROL;
        return MESSAGE_OTHER;
}

/* 1. Execution */

static void drop_unverified(struct pipeline *pipeline) {
        pipeline->counters.n_drops[DROP_UNVERIFIED]++;
        log_limited(
                &pipeline->unverified_limit, LOG_WARNING,
                "request dropped: the plugin did not verify it; it is a will, was changed, came through a "
                "listener without the plugin, or waited while broker and store restarted");
}

/* Update the largest skew of a request's timestamp, ahead of the wall clock or behind it. */
static void count_skew(struct counters *counters, int64_t timestamp_ms, int64_t wall_ms) {
        uint64_t *max = timestamp_ms > wall_ms ? &counters->ahead_max_ms : &counters->behind_max_ms;
        uint64_t skew_ms = timestamp_ms > wall_ms ? (uint64_t)timestamp_ms - (uint64_t)wall_ms
                                                  : (uint64_t)wall_ms - (uint64_t)timestamp_ms;

        if (skew_ms > *max)
                *max = skew_ms;
}

/* Execute a request, or reply with the error that its decoding found, and put the reply into the batch. */
static void execute_and_reply(struct pipeline *pipeline, const struct pending_reply *address,
                              const struct invocation *invocation, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        struct pending_reply *pending = batch_add_reply(batch, address);
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };

        if (!pending) {
                publisher_count_out_of_memory(&pipeline->publisher);
                return;
        }
        pending->reply = (struct reply){ .outcome = invocation->outcome };
        if (invocation->result == INVOCATION_REQUEST) {
                event.reply = &pending->reply;
                engine_step(pipeline->state->engine, &event, now, &batch->effects);
        } else {
                pipeline->counters.n_refused++;
                pipeline->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
        }
        pending->n_preceding_changes = batch->effects.n_changes;
        if (outcome_is_error(pending->reply.outcome))
                client_log_refusal(&pipeline->client_log, pipeline->state->engine, &invocation->request,
                                   pending->reply.outcome, now);
}

static void refuse_faulty(struct pipeline *pipeline, const struct pending_reply *address,
                          const struct invocation *invocation, struct now now) {
        pipeline->counters.n_refused++;
        pipeline->counters.n_faults[invocation->fault]++;
        client_log_fault(&pipeline->client_log, pipeline->state->engine, invocation);
        publish_fault(pipeline, address, invocation->fault, invocation->fault_value, now);
}

/* Returns false if the request was dropped. */
static bool execute_decoded(struct pipeline *pipeline, struct pending_reply *address,
                            const struct invocation *invocation, struct now now) {
        const struct request *request = &invocation->request;

        switch (invocation->result) {
        case INVOCATION_NO_RESPONSE_TOPIC:
        case INVOCATION_BAD_RESPONSE_TOPIC:
                pipeline->counters.n_invalid_response_topics++;
                client_log_invalid_response_topic(&pipeline->client_log, pipeline->state->engine, request);
                return false;
        case INVOCATION_REQUEST:
                address->verb = request->verb;
                if (request->has_timestamp)
                        count_skew(&pipeline->counters, request->timestamp.wall_ms, now.wall_ms);
                break;
        default:
                break;
        }

        if (pending_reply_expiry_s(address, now.mono_ns) == 0)
                pipeline->counters.n_expired++;
        else if (invocation->result == INVOCATION_FAULTY)
                refuse_faulty(pipeline, address, invocation, now);
        else
                execute_and_reply(pipeline, address, invocation, now);
        return true;
}

/* Decode and execute a request. Returns false if it was dropped. */
static bool execute_request(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                            struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        struct pending_reply address = pending_reply_to(message, arrived_ns);
        struct invocation invocation;

        /*
         * The request arrived from a broker without the plugin, and now the store serves a broker
         * with the plugin.
         */
        if (session_broker_kind(&pipeline->session) == BROKER_WITH_PLUGIN && message->qos == 1 &&
            !message->is_verified) {
                drop_unverified(pipeline);
                return false;
        }
        invocation_decode(&pipeline->decoder, message, &invocation);
        if (hooks)
                address.number = hooks->request(hooks->userdata, &invocation, now);
        return execute_decoded(pipeline, &address, &invocation, now);
}

/*
 * Acknowledge DISCONNECTED with UNTRACK. If memory is short, send nothing: the plugin repeats
 * DISCONNECTED.
 */
static void acknowledge_disconnect(struct pipeline *pipeline, uint64_t connection) {
        struct effects *effects = &pipeline->cycle.batch.effects;

        if (session_broker_kind(&pipeline->session) == BROKER_WITH_PLUGIN &&
            effects_reserve_track(effects) == 0)
                effects_track(effects, connection, UNTRACK_CONNECTION);
}

static void execute_disconnected(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event closed = { .type = EVENT_CONNECTION_CLOSED };

        if (parse_uint64(message->payload, &closed.connection) == 0 &&
            cycle_step(pipeline, &closed, now) == 0)
                acknowledge_disconnect(pipeline, closed.connection);
}

/* Return true if the message reports on the presence topic that a client has disconnected. */
static bool is_presence(const struct pipeline *pipeline, const struct message *message,
                        struct slice *ret_client) {
        return pipeline->presence_topic &&
               topic_match_client(message->topic, slice_from_string(pipeline->presence_topic), ret_client);
}

/* Execute a message that reports a disconnect: of the plugin, or on the presence topic. */
static void execute_other(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event disconnected = { .type = EVENT_CLIENT_DISCONNECTED };

        if (slice_equal(message->topic, SLICE_LITERAL(COMPANION_DISCONNECTED)))
                execute_disconnected(pipeline, message, now);
        else if (session_broker_kind(&pipeline->session) == BROKER_PLAIN &&
                 is_presence(pipeline, message, &disconnected.client))
                cycle_step(pipeline, &disconnected, now);
}

static void execute_control(struct pipeline *pipeline, const struct message *message, struct now now) {
        pipeline->hooks->control(pipeline->hooks->userdata, message, now);
}

/*
 * Execute a message, and count it towards the limits of the batch and of the quantum. The clock is
 * read once per message: the end of this message is the start of the next.
 */
static void execute_message(struct pipeline *pipeline, const struct message *message, enum message_kind kind,
                            int64_t arrived_ns, struct now now) {
        struct histogram *latencies = pipeline->counters.latencies;
        int64_t start_ns = pipeline->cycle.execution_start_ns;
        bool is_measured = false;

        pipeline->cycle.n_done++;
        batch_add_message(&pipeline->cycle.batch, message);
        if (kind == MESSAGE_REQUEST)
                is_measured =
                        execute_request(pipeline, message, arrived_ns, now) && pipeline->transport.clock_ns;
        else if (kind == MESSAGE_CONTROL)
                execute_control(pipeline, message, now);
        else
                execute_other(pipeline, message, now);

        batch_add_cost(&pipeline->cycle.batch);
        execute_charge_quantum(pipeline);
        if (is_measured) {
                histogram_add(&latencies[STAGE_QUEUE], start_ns - arrived_ns);
                histogram_add(&latencies[STAGE_ENGINE], pipeline->cycle.execution_start_ns - start_ns);
        }
}

/* 2. Waiting */

/*
 * The transport must have room: the reply to a request with invalid properties is published at
 * once.
 */
bool execute_can_begin(const struct pipeline *pipeline) {
        return session_broker_kind(&pipeline->session) != BROKER_UNKNOWN &&
               pipeline->cycle.state == CYCLE_OPEN && publisher_has_room(&pipeline->publisher) &&
               !cycle_batch_is_full(pipeline) && !delivery_is_full(&pipeline->delivery);
}

/*
 * Test control executes only in an empty batch: it may change state that the requests of a batch
 * have used.
 */
static bool can_execute_now(const struct pipeline *pipeline, enum message_kind kind) {
        return execute_can_begin(pipeline) &&
               (kind != MESSAGE_CONTROL || batch_is_empty(&pipeline->cycle.batch));
}

bool execute_is_quantum_over(const struct pipeline *pipeline) {
        int64_t quantum_ns = pipeline->cycle.commit_duration_ns;

        if (quantum_ns < QUANTUM_NS)
                quantum_ns = QUANTUM_NS;
        if (quantum_ns > QUANTUM_NS_MAX)
                quantum_ns = QUANTUM_NS_MAX;
        return pipeline->cycle.quantum_work_ns >= quantum_ns;
}

void execute_charge_quantum(struct pipeline *pipeline) {
        int64_t now_ns;

        if (!pipeline->transport.clock_ns)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        pipeline->cycle.quantum_work_ns += now_ns - pipeline->cycle.execution_start_ns;
        pipeline->cycle.execution_start_ns = now_ns;
}

/*
 * Return the client in whose queue the message waits. A presence message waits behind the requests
 * of its client. Messages of the plugin wait in a queue for their topic.
 */
static struct slice queue_of(const struct pipeline *pipeline, const struct message *message,
                             enum message_kind kind) {
        struct slice client;

        /* Test control takes effect in the order of arrival: all messages share one queue. */
        if (pipeline->hooks && pipeline->hooks->control)
                return (struct slice){ 0 };
        if (kind == MESSAGE_REQUEST)
                return invocation_sender(&pipeline->decoder, message);
        if (is_presence(pipeline, message, &client))
                return client;
        return message->topic;
}

static void count_refused_by_inbox(struct pipeline *pipeline, const struct message *message, int error) {
        if (error != -ENOBUFS) {
                publisher_count_out_of_memory(&pipeline->publisher);
                return;
        }
        pipeline->counters.n_drops[DROP_TOO_MANY_WAITING]++;
        log_limited_fields(
                &pipeline->waiting_limit, LOG_ERROR, "request dropped: too many requests wait",
                (struct log_field[]){ LOG_FIELD_NUMBER("request_bytes", message->payload.length),
                                      LOG_FIELD_NUMBER("waiting_bytes", pipeline_n_waiting_bytes(pipeline)),
                                      LOG_FIELD_NUMBER("max_waiting_bytes", PIPELINE_INBOX_MAX),
                                      { 0 } });
}

/*
 * Verify a request if the broker has the plugin. Returns false if the request must be dropped. A
 * request at QoS 0 or 2 is not dropped: it gets an error. is_before_welcome: the request arrived
 * before WELCOME, so its MAC may have the former key.
 */
static bool verify(struct pipeline *pipeline, const struct message *message, enum message_kind kind,
                   bool is_before_welcome, bool *ret_is_verified) {
        *ret_is_verified = false;
        if (session_broker_kind(&pipeline->session) != BROKER_WITH_PLUGIN || kind != MESSAGE_REQUEST ||
            message->qos != 1)
                return true;

        switch (verification_check(&pipeline->session.key_states, message, is_before_welcome)) {
        case VERIFICATION_PASSED:
                *ret_is_verified = true;
                return true;
        case VERIFICATION_REPEATED:
                pipeline->counters.n_drops[DROP_REPEATED]++;
                return false;
        case VERIFICATION_FAILED:
                break;
        }
        drop_unverified(pipeline);
        return false;
}

/*
 * Execute the message, or add it to the inbox, or drop it if it is not verified. Returns 0,
 * -ENOBUFS or -ENOMEM.
 */
static int admit(struct pipeline *pipeline, const struct message *message, enum message_kind kind,
                 struct now now) {
        struct message verified;
        bool is_verified;

        if (!verify(pipeline, message, kind, false, &is_verified))
                return 0;
        if (is_verified) {
                verified = *message;
                verified.is_verified = true;
                message = &verified;
        }
        if (pipeline->inbox.queues.n_bytes > 0 || execute_is_quantum_over(pipeline) ||
            !can_execute_now(pipeline, kind))
                return inbox_add(&pipeline->inbox, queue_of(pipeline, message, kind), message, now.mono_ns,
                                 PIPELINE_INBOX_MAX);

        pipeline->cycle.execution_start_ns = now.mono_ns;
        execute_message(pipeline, message, kind, now.mono_ns, now);
        return 0;
}

void execute_admit_early(struct pipeline *pipeline) {
        struct message *message;

        while ((message = inbox_first_early(&pipeline->inbox))) {
                enum message_kind kind = kind_of(pipeline, message);
                int r;

                if (!verify(pipeline, message, kind, true, &message->is_verified)) {
                        inbox_drop_early(&pipeline->inbox);
                        continue;
                }
                r = inbox_admit_early(&pipeline->inbox, queue_of(pipeline, message, kind),
                                      PIPELINE_INBOX_MAX);
                if (r < 0) {
                        count_refused_by_inbox(pipeline, message, r);
                        inbox_drop_early(&pipeline->inbox);
                }
        }
}

void execute_waiting(struct pipeline *pipeline, struct now now) {
        if (inbox_is_empty(&pipeline->inbox))
                return;

        pipeline->cycle.quantum_work_ns = 0;
        if (pipeline->transport.clock_ns) /* publishing has taken time */
                pipeline->cycle.execution_start_ns =
                        pipeline->transport.clock_ns(pipeline->transport.userdata);
        while (!inbox_is_empty(&pipeline->inbox) && !execute_is_quantum_over(pipeline)) {
                int64_t arrived_ns;
                const struct message *message = inbox_first(&pipeline->inbox, &arrived_ns);
                enum message_kind kind = kind_of(pipeline, message);

                if (!can_execute_now(pipeline, kind))
                        return;
                execute_message(pipeline, message, kind, arrived_ns, now);
                inbox_drop(&pipeline->inbox);
                if (kind == MESSAGE_CONTROL) /* it may have changed the test clock: `now` is old */
                        return;
        }
}

/* Process a message of the plugin on its arrival. Returns false for other messages. */
static bool receive_of_plugin(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct session_event event;

        if (!session_receive(&pipeline->session, message, now, &event))
                return false;

        switch (event.type) {
        case SESSION_EVENT_NONE:
                break;
        case SESSION_EVENT_WELCOME:
                if (pipeline->cycle.state == CYCLE_OPEN) /* else HELLO is repeated after the timeout */
                        cycle_serve_plugin(pipeline, &event.welcome, now);
                companion_welcome_deinit(&event.welcome);
                break;
        case SESSION_EVENT_DELIVERED:
                delivery_delivered(&pipeline->delivery, event.sequence);
                break;
        case SESSION_EVENT_SLOW_WATCHER:
                pipeline->counters.n_slow_watchers++;
                client_log_slow_watcher(&pipeline->client_log, pipeline->state->engine, message->payload);
                break;
        }
        return true;
}

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        enum message_kind kind = kind_of(pipeline, message);
        int r;

        if (kind == MESSAGE_OTHER && receive_of_plugin(pipeline, message, now))
                return;
        if (session_broker_kind(&pipeline->session) == BROKER_UNKNOWN) {
                session_extend_timeout(&pipeline->session, now);
                r = inbox_add_early(&pipeline->inbox, message, now.mono_ns, PIPELINE_INBOX_MAX);
        } else {
                r = admit(pipeline, message, kind, now);
        }
        if (r < 0)
                count_refused_by_inbox(pipeline, message, r);
        /*
         * Publish the reply now, so that the broker forwards it while the pipeline reads the next
         * request.
         */
        if (!pipeline->storage && pipeline->inbox.queues.n_bytes == 0 && pipeline->inbox.n_early_bytes == 0)
                cycle_advance(pipeline, now);
}
