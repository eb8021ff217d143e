/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Process a request from its arrival until its reply is in the batch.
 *
 * With the plugin, requests arrive in frames, whose records wait in frames_in. Without the plugin,
 * they arrive as messages. A message is executed on arrival if the broker kind is known, no other
 * message waits, the quantum is not used up, and the batch may take the message. Otherwise it waits
 * in the inbox. If the broker turns out to have the plugin, the requests in the inbox are dropped.
 */

#include <errno.h>

#include "pipeline/hooks.h"
#include "pipeline/internal.h"
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

/* Update the largest skew of a request's timestamp, ahead of the wall clock or behind it. */
static void count_skew(struct counters *counters, int64_t timestamp_ms, int64_t wall_ms) {
        uint64_t *max = timestamp_ms > wall_ms ? &counters->ahead_max_ms : &counters->behind_max_ms;
        uint64_t skew_ms = timestamp_ms > wall_ms ? (uint64_t)timestamp_ms - (uint64_t)wall_ms
                                                  : (uint64_t)wall_ms - (uint64_t)timestamp_ms;

        if (skew_ms > *max)
                *max = skew_ms;
}

/* Execute the request, and set its reply; or set the error that its decoding found. */
static void execute_or_refuse(struct pipeline *pipeline, struct pending_reply *pending,
                              const struct invocation *invocation, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        struct event event = { .type = EVENT_REQUEST,
                               .request = &invocation->request,
                               .reply = &pending->reply };

        pending->reply = (struct reply){ .result = { .outcome = invocation->outcome } };
        if (invocation->result == INVOCATION_REQUEST) {
                engine_step(pipeline->state->engine, &event, now, &batch->effects);
        } else {
                pipeline->counters.n_refused++;
                pipeline->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
        }
        if (outcome_is_error(pending->reply.result.outcome))
                client_log_refusal(&pipeline->client_log, pipeline->state->engine, &invocation->request,
                                   pending->reply.result.outcome, now);
}

/*
 * Put the reply into the batch. If memory is short, nothing is executed: the plugin sends a request
 * in a frame again, after the next HELLO.
 */
static void execute_and_reply(struct pipeline *pipeline, const struct pending_reply *address,
                              const struct invocation *invocation, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        struct pending_reply *pending = batch_add_reply(batch, address);

        if (!pending && address->number > 0) {
                frames_out_fail(&pipeline->frames_out);
                return;
        }
        if (!pending) {
                publisher_count_out_of_memory(&pipeline->publisher);
                return;
        }
        if (invocation->result == INVOCATION_FAULTY) {
                pipeline->counters.n_refused++;
                pipeline->counters.n_faults[invocation->fault]++;
                client_log_fault(&pipeline->client_log, pipeline->state->engine, invocation);
        } else {
                execute_or_refuse(pipeline, pending, invocation, now);
        }
        pending->n_preceding_changes = batch->effects.n_changes;
}

/* Execute a decoded request. Returns false if it was dropped. */
static bool execute_request(struct pipeline *pipeline, struct invocation *invocation, int64_t arrived_ns,
                            struct now now) {
        const struct request *request = &invocation->request;
        const struct hooks *hooks = pipeline->hooks;
        uint64_t hook_number = hooks ? hooks->request(hooks->userdata, invocation, now) : 0;
        struct pending_reply address = pending_reply_to(invocation, arrived_ns);

        address.hook_number = hook_number;
        if (invocation->result == INVOCATION_NO_RESPONSE_TOPIC ||
            invocation->result == INVOCATION_BAD_RESPONSE_TOPIC) {
                pipeline->counters.n_invalid_response_topics++;
                client_log_invalid_response_topic(&pipeline->client_log, pipeline->state->engine, request);
                return false;
        }
        if (invocation->result == INVOCATION_REQUEST && request->has_timestamp)
                count_skew(&pipeline->counters, request->timestamp.wall_ms, now.wall_ms);

        if (pending_reply_expiry_s(&address, now.mono_ns) == 0)
                pipeline->counters.n_expired++;
        else
                execute_and_reply(pipeline, &address, invocation, now);
        return true;
}

static void execute_disconnected(struct pipeline *pipeline, const struct frame_to_store_record *record,
                                 struct now now) {
        struct event closed = { .type = EVENT_CONNECTION_CLOSED, .connection = record->connection };

        cycle_step(pipeline, &closed, now);
        if (!record->is_slow_watcher)
                return;
        pipeline->counters.n_slow_watchers++;
        client_log_slow_watcher(&pipeline->client_log, pipeline->state->engine, record->client_id);
}

/* Return true if the message reports on the presence topic that a client has disconnected. */
static bool is_presence(const struct pipeline *pipeline, const struct message *message,
                        struct slice *ret_client) {
        return pipeline->presence_topic &&
               topic_match_client(message->topic, slice_from_string(pipeline->presence_topic), ret_client);
}

/* Execute a message that reports a disconnect on the presence topic. */
static void execute_presence(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct event disconnected = { .type = EVENT_CLIENT_DISCONNECTED };

        if (is_presence(pipeline, message, &disconnected.client))
                cycle_step(pipeline, &disconnected, now);
}

/*
 * A message or a record was executed: count its cost towards the limits of the batch and of the
 * quantum. The clock is read once: the end of this execution is the start of the next.
 */
static void end_execution(struct pipeline *pipeline, int64_t arrived_ns, bool is_request) {
        struct histogram *latencies = pipeline->counters.latencies;
        int64_t start_ns = pipeline->cycle.execution_start_ns;

        pipeline->cycle.n_done++;
        batch_add_cost(&pipeline->cycle.batch);
        execute_charge_quantum(pipeline);
        if (is_request && pipeline->transport.clock_ns) {
                histogram_add(&latencies[STAGE_QUEUE], start_ns - arrived_ns);
                histogram_add(&latencies[STAGE_ENGINE], pipeline->cycle.execution_start_ns - start_ns);
        }
}

static void execute_message(struct pipeline *pipeline, const struct message *message, enum message_kind kind,
                            int64_t arrived_ns, struct now now) {
        struct invocation invocation;
        bool is_request = false;

        batch_add_message(&pipeline->cycle.batch, message_size(message));
        if (kind == MESSAGE_REQUEST) {
                invocation_decode(&pipeline->decoder, message, &invocation);
                is_request = execute_request(pipeline, &invocation, arrived_ns, now);
        } else if (kind == MESSAGE_CONTROL) {
                pipeline->hooks->control(pipeline->hooks->userdata, message, now);
        } else {
                execute_presence(pipeline, message, now);
        }
        end_execution(pipeline, arrived_ns, is_request);
}

static void execute_record(struct pipeline *pipeline, const struct record_in *in, struct now now) {
        struct batch *batch = &pipeline->cycle.batch;
        struct invocation invocation;
        bool is_request = false;

        batch_add_message(batch, in->n_bytes);
        if (in->record.kind == FRAME_REQUEST) {
                invocation_decode_record(&pipeline->decoder, &in->record, &invocation);
                invocation.request.id = (struct request_id){ pipeline->session.broker_run, in->number };
                is_request = execute_request(pipeline, &invocation, in->arrived_ns, now);
        } else {
                execute_disconnected(pipeline, &in->record, now);
        }
        batch->last_number = in->number;
        end_execution(pipeline, in->arrived_ns, is_request);
}

/* 2. Waiting */

/* If the broker does not keep up, replies would only need memory. */
bool execute_can_begin(const struct pipeline *pipeline) {
        return session_broker_kind(&pipeline->session) != BROKER_UNKNOWN &&
               pipeline->cycle.state == CYCLE_OPEN && publisher_has_room(&pipeline->publisher) &&
               !cycle_have_frames_failed(pipeline) && !cycle_batch_is_full(pipeline) &&
               !delivery_is_full(&pipeline->delivery);
}

/* The next record, if the broker has the plugin, which sent it after the last HELLO. */
static const struct record_in *next_record(const struct pipeline *pipeline) {
        if (session_broker_kind(&pipeline->session) != BROKER_WITH_PLUGIN)
                return NULL;
        return frames_in_first(&pipeline->frames_in);
}

bool execute_has_waiting(const struct pipeline *pipeline) {
        return !inbox_is_empty(&pipeline->inbox) || next_record(pipeline);
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
        pipeline->cycle.batch.execution_ns += now_ns - pipeline->cycle.execution_start_ns;
        pipeline->cycle.execution_start_ns = now_ns;
}

/*
 * Return the client in whose queue the message waits. A presence message waits behind the requests
 * of its client.
 */
static struct slice queue_of(const struct pipeline *pipeline, const struct message *message,
                             enum message_kind kind) {
        struct slice client;

        /* Test control takes effect in the order of arrival: all messages share one queue. */
        if (pipeline->hooks && pipeline->hooks->control)
                return (struct slice){ 0 };
        if (kind == MESSAGE_REQUEST)
                return invocation_sender(message);
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
 * Return whether to execute a message of this kind; count and log a request that is not executed. A
 * broker with the plugin has requests and disconnects only in frames: a message is a will, or came
 * through a listener without the plugin.
 */
static bool is_accepted(struct pipeline *pipeline, enum message_kind kind) {
        if (session_broker_kind(&pipeline->session) != BROKER_WITH_PLUGIN || kind == MESSAGE_CONTROL)
                return true;
        if (kind == MESSAGE_REQUEST) {
                pipeline->counters.n_drops[DROP_OUTSIDE_FRAME]++;
                log_limited(&pipeline->outside_frame_limit, LOG_WARNING,
                            "request dropped: it was not in a frame of the plugin; it waited while broker "
                            "and store restarted, or the plugin is not loaded in each listener");
        }
        return false;
}

/* Execute the message, or add it to the inbox, or drop it. Returns 0, -ENOBUFS or -ENOMEM. */
static int admit(struct pipeline *pipeline, const struct message *message, enum message_kind kind,
                 struct now now) {
        if (!is_accepted(pipeline, kind))
                return 0;
        if (execute_has_waiting(pipeline) || execute_is_quantum_over(pipeline) ||
            !can_execute_now(pipeline, kind))
                return inbox_add(&pipeline->inbox, queue_of(pipeline, message, kind), message, now.mono_ns,
                                 PIPELINE_INBOX_MAX);

        pipeline->cycle.execution_start_ns = now.mono_ns;
        execute_message(pipeline, message, kind, now.mono_ns, now);
        return 0;
}

/*
 * Execute the first message, or the first record if no message waits: with the plugin, messages are
 * only those of test control. Returns false if nothing more can be executed now.
 */
static bool execute_next(struct pipeline *pipeline, struct now now) {
        const struct message *message;
        const struct record_in *in;
        enum message_kind kind;
        int64_t arrived_ns;

        if (inbox_is_empty(&pipeline->inbox)) {
                in = next_record(pipeline);
                if (!in || !execute_can_begin(pipeline))
                        return false;
                execute_record(pipeline, in, now);
                frames_in_drop(&pipeline->frames_in);
                return true;
        }

        message = inbox_first(&pipeline->inbox, &arrived_ns);
        kind = kind_of(pipeline, message);
        if (!can_execute_now(pipeline, kind))
                return false;
        if (is_accepted(pipeline, kind)) /* else it arrived before the broker kind was known */
                execute_message(pipeline, message, kind, arrived_ns, now);
        inbox_drop(&pipeline->inbox);
        return kind != MESSAGE_CONTROL; /* it may have changed the test clock: `now` is old */
}

void execute_waiting(struct pipeline *pipeline, struct now now) {
        pipeline->cycle.quantum_work_ns = 0;
        if (pipeline->transport.clock_ns) /* publishing has taken time */
                pipeline->cycle.execution_start_ns =
                        pipeline->transport.clock_ns(pipeline->transport.userdata);
        while (!execute_is_quantum_over(pipeline) && execute_next(pipeline, now))
                ;
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
                if (pipeline->cycle.state == CYCLE_OPEN)
                        cycle_serve_plugin(pipeline, &event.welcome, now);
                else
                        cycle_restart_session(pipeline);
                break;
        case SESSION_EVENT_FRAME:
                delivery_delivered(&pipeline->delivery, pipeline->frames_in.delivered);
                break;
        case SESSION_EVENT_FRAME_MISSING:
                cycle_restart_session(pipeline);
                break;
        }
        session_event_deinit(&event);
        return true;
}

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        enum message_kind kind = kind_of(pipeline, message);
        int r = 0;

        /* With a storage, the caller's next event executes the records of a frame. */
        if (kind != MESSAGE_OTHER || !receive_of_plugin(pipeline, message, now))
                r = admit(pipeline, message, kind, now);
        if (r < 0)
                count_refused_by_inbox(pipeline, message, r);
        /*
         * Publish the reply now, so that the broker forwards it while the pipeline reads the next
         * request.
         */
        if (!pipeline->storage && inbox_is_empty(&pipeline->inbox))
                cycle_advance(pipeline, now);
}
