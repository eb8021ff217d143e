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
        if (pipeline->hooks && slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL)))
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

/* Execute a request, or reply with the error that its decoding found. */
static struct reply execute(struct pipeline *pipeline, const struct invocation *invocation, struct now now) {
        struct reply reply = { .outcome = invocation->outcome };
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request, .reply = &reply };

        if (invocation->outcome == OUTCOME_DONE) { /* decoding found no error */
                engine_step(pipeline->state->engine, &event, now, &pipeline->batch.effects);
        } else {
                pipeline->counters.n_refused++;
                pipeline->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
        }
        return reply;
}

/* Execute a request that has a valid response topic, and put its reply into the batch. */
static void execute_and_reply(struct pipeline *pipeline, const struct pending_reply *address,
                              const struct invocation *invocation, struct now now) {
        struct pending_reply *pending;

        if (pending_reply_expiry_s(address, now.mono_ns) == 0) {
                pipeline->counters.n_expired++;
                return;
        }
        if (invocation->fault != REQUEST_FAULT_NONE) {
                pipeline->counters.n_refused++;
                pipeline->counters.n_faults[invocation->fault]++;
                client_log_fault(&pipeline->client_log, pipeline->state->engine, invocation);
                publish_fault(pipeline, address, invocation->fault, invocation->fault_value, now);
                return;
        }

        pending = batch_add_reply(&pipeline->batch, address);
        if (!pending) {
                pipeline_count_out_of_memory(pipeline);
                return;
        }
        pending->reply = execute(pipeline, invocation, now);
        pending->n_preceding_changes = pipeline->batch.effects.n_changes;
        if (outcome_is_error(pending->reply.outcome))
                client_log_refusal(&pipeline->client_log, pipeline->state->engine, &invocation->request,
                                   pending->reply.outcome, now);
}

/* Returns false if the request was dropped, or has no valid response topic. */
static bool execute_request(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                            struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        struct invocation invocation;
        enum invocation_result result = invocation_decode(&pipeline->decoder, message, &invocation);
        struct pending_reply address = pending_reply_to(message, arrived_ns);

        /*
         * The request arrived from a broker without the plugin, and now the store serves a broker
         * with the plugin.
         */
        if (pipeline->broker_kind == BROKER_WITH_PLUGIN && message->qos == 1 && !message->is_verified) {
                drop_unverified(pipeline);
                return false;
        }
        if (hooks)
                address.number =
                        hooks->request(hooks->userdata, &invocation,
                                       result == INVOCATION_REQUEST || result == INVOCATION_REFUSED, now);

        if (result == INVOCATION_NO_RESPONSE_TOPIC || result == INVOCATION_BAD_RESPONSE_TOPIC) {
                pipeline->counters.n_invalid_response_topics++;
                client_log_invalid_response_topic(&pipeline->client_log, pipeline->state->engine,
                                                  &invocation.request);
                return false;
        }
        if (invocation.outcome == OUTCOME_DONE) {
                address.verb = invocation.request.verb;
                if (invocation.request.has_timestamp)
                        count_skew(&pipeline->counters, invocation.request.timestamp.wall_ms, now.wall_ms);
        }
        execute_and_reply(pipeline, &address, &invocation, now);
        return true;
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
        int64_t start_ns = pipeline->execution_start_ns;
        bool is_measured = false;

        pipeline->n_done++;
        batch_add_message(&pipeline->batch, message);
        if (kind == MESSAGE_REQUEST)
                is_measured =
                        execute_request(pipeline, message, arrived_ns, now) && pipeline->transport.clock_ns;
        else if (kind == MESSAGE_CONTROL)
                execute_control(pipeline, message, now);
        else
                broker_execute_disconnect(pipeline, message, now);

        batch_add_cost(&pipeline->batch);
        pipeline_charge_quantum(pipeline);
        if (is_measured) {
                histogram_add(&latencies[STAGE_QUEUE], start_ns - arrived_ns);
                histogram_add(&latencies[STAGE_ENGINE], pipeline->execution_start_ns - start_ns);
        }
}

/* 2. Waiting */

/*
 * The transport must have room: the reply to a request with invalid properties is published at
 * once.
 */
bool pipeline_can_execute(const struct pipeline *pipeline) {
        return pipeline->broker_kind != BROKER_UNKNOWN && !pipeline->commit.is_in_flight &&
               !pipeline->is_publishing && publish_has_room(pipeline) && !pipeline_batch_is_full(pipeline) &&
               !outbox_is_full(pipeline->state);
}

/*
 * Test control executes only in an empty batch: it may change state that the requests of a batch
 * have used.
 */
static bool can_execute_now(const struct pipeline *pipeline, enum message_kind kind) {
        return pipeline_can_execute(pipeline) &&
               (kind != MESSAGE_CONTROL || batch_is_empty(&pipeline->batch));
}

bool pipeline_is_quantum_over(const struct pipeline *pipeline) {
        int64_t quantum_ns = pipeline->commit.duration_ns;

        if (quantum_ns < QUANTUM_NS)
                quantum_ns = QUANTUM_NS;
        if (quantum_ns > QUANTUM_NS_MAX)
                quantum_ns = QUANTUM_NS_MAX;
        return pipeline->quantum_work_ns >= quantum_ns;
}

void pipeline_charge_quantum(struct pipeline *pipeline) {
        int64_t now_ns;

        if (!pipeline->transport.clock_ns)
                return;

        now_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        pipeline->quantum_work_ns += now_ns - pipeline->execution_start_ns;
        pipeline->execution_start_ns = now_ns;
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
        if (pipeline->presence_topic &&
            topic_match_client(message->topic, slice_from_string(pipeline->presence_topic), &client))
                return client;
        return message->topic;
}

static void count_refused_by_inbox(struct pipeline *pipeline, const struct message *message, int error) {
        if (error != -ENOBUFS) {
                pipeline_count_out_of_memory(pipeline);
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
        if (pipeline->broker_kind != BROKER_WITH_PLUGIN || kind != MESSAGE_REQUEST || message->qos != 1)
                return true;

        switch (verification_check(&pipeline->key_states, message, is_before_welcome)) {
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
        if (pipeline->inbox.n_bytes > 0 || pipeline_is_quantum_over(pipeline) ||
            !can_execute_now(pipeline, kind))
                return inbox_add(&pipeline->inbox, queue_of(pipeline, message, kind), message, now.mono_ns,
                                 PIPELINE_INBOX_MAX);

        pipeline->execution_start_ns = now.mono_ns;
        execute_message(pipeline, message, kind, now.mono_ns, now);
        return 0;
}

void pipeline_admit_early_messages(struct pipeline *pipeline) {
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

void pipeline_execute_waiting(struct pipeline *pipeline, struct now now) {
        if (inbox_is_empty(&pipeline->inbox))
                return;

        pipeline->quantum_work_ns = 0;
        if (pipeline->transport.clock_ns) /* publishing has taken time */
                pipeline->execution_start_ns = pipeline->transport.clock_ns(pipeline->transport.userdata);
        while (!inbox_is_empty(&pipeline->inbox) && !pipeline_is_quantum_over(pipeline)) {
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

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        enum message_kind kind = kind_of(pipeline, message);
        int r;

        if (kind == MESSAGE_OTHER && companion_receive(pipeline, message, now))
                return;
        if (pipeline->broker_kind == BROKER_UNKNOWN) {
                companion_extend_welcome_timeout(pipeline, now);
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
        if (!pipeline->storage && pipeline->inbox.n_bytes == 0 && pipeline->inbox.n_early_bytes == 0)
                pipeline_end_batch(pipeline, now);
}
