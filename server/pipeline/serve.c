/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Serve the items of the queue: decode a request, let the engine execute it, and put its reply into
 * the batch. An item is served only in an open batch.
 */

#include "base/cleanup.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"
#include "protocol/topics.h"

/* 1. A request */

/* Update the largest skew of a request's timestamp, ahead of the wall clock or behind it. */
static void count_skew(struct counters *counters, int64_t timestamp_ms, int64_t wall_ms) {
        uint64_t *max = timestamp_ms > wall_ms ? &counters->ahead_max_ms : &counters->behind_max_ms;
        uint64_t skew_ms = timestamp_ms > wall_ms ? (uint64_t)timestamp_ms - (uint64_t)wall_ms
                                                  : (uint64_t)wall_ms - (uint64_t)timestamp_ms;

        if (skew_ms > *max)
                *max = skew_ms;
}

/* For operators: what was executed, or why the request was refused. */
static void observe_request(struct pipeline *pipeline, const struct invocation *invocation,
                            enum outcome outcome, struct now now) {
        const struct request *request = &invocation->request;
        struct counters *counters = &pipeline->counters;
        const struct engine *engine = pipeline->state->engine;

        if (invocation->fault != REQUEST_FAULT_NONE) {
                counters->n_faults[invocation->fault]++;
                client_log_fault(&pipeline->client_log, engine, invocation);
        } else if (invocation->outcome != OUTCOME_DONE) {
                counters->n_refusals[request->verb][outcome]++;
        } else if (request->has_timestamp) {
                count_skew(counters, request->timestamp.wall_ms, now.wall_ms);
        }
        if (outcome_is_error(outcome))
                client_log_refusal(&pipeline->client_log, engine, request, outcome, now);
        observation_add_request(&pipeline->observation, &pipeline->batch.effects, invocation, outcome, now);
}

/*
 * Add the reply to the batch, and execute the request, unless decoding has found an error. Make room for
 * the reply first: without memory for it nothing is executed.
 */
static void execute_and_reply(struct pipeline *pipeline, struct queue_item *item,
                              const struct invocation *invocation, struct now now) {
        struct batch *batch = &pipeline->batch;
        struct pending_reply *pending = batch_add_reply(batch, item, invocation);

        if (!pending) {
                if (item->requester)
                        drops_out_of_memory(&pipeline->drops);
                else
                        outbox_lose(&pipeline->outbox);
                return;
        }
        pending->requester = take_ptr(&item->requester);
        observation_add_changes(&pipeline->observation, &batch->effects, now);
        if (invocation_is_accepted(invocation))
                engine_request(pipeline->state->engine, &invocation->request, &pending->reply, now,
                               &batch->effects);
        batch_end_reply(batch, pending, pipeline->state->header.clock);
        observe_request(pipeline, invocation, pending->reply.result.outcome, now);
}

/* No client of the broker may have the id of a client inside the process. Its identity is not verified. */
static void refuse_inner_id(struct invocation *invocation) {
        struct request *request = &invocation->request;

        if (!slice_starts_with(request->client, SLICE_LITERAL(INNER_CLIENT_PREFIX)))
                return;
        request->connection = 0;
        if (invocation_is_accepted(invocation))
                invocation->outcome = OUTCOME_NOT_AUTHORIZED;
}

/* The sender of an item from inside the process is its requester. */
static void decode_item(const struct pipeline *pipeline, const struct queue_item *item,
                        struct invocation *ret_invocation) {
        invocation_decode(&pipeline->decoder, &item->record, ret_invocation);
        ret_invocation->request.expiry_s = item->expiry_s;
        if (item->requester)
                requester_identify(item->requester, ret_invocation);
        else
                refuse_inner_id(ret_invocation);
}

static bool has_expired(const struct queue_item *item, struct now now) {
        if (item->requester)
                return requester_has_ended(item->requester);
        return message_expiry_rest_s(item->has_expiry, item->expiry_s, now.mono_ns - item->arrived_ns) == 0;
}

/* Decode the request, and execute it. Drop it if it has expired, or has no valid response topic. */
static void serve_request(struct pipeline *pipeline, struct queue_item *item, struct now now) {
        struct invocation invocation;
        const struct hooks *hooks = pipeline->hooks;

        decode_item(pipeline, item, &invocation);
        if (hooks && !item->requester)
                hooks->request(hooks->userdata, &invocation, now);
        if (!invocation.has_response_topic) {
                pipeline->counters.n_invalid_response_topics++;
                client_log_invalid_response_topic(&pipeline->client_log, pipeline->state->engine,
                                                  &invocation.request);
        } else if (has_expired(item, now)) {
                pipeline->counters.n_expired++;
        } else {
                execute_and_reply(pipeline, item, &invocation, now);
        }
}

/* 2. Waiting items */

static void report_disconnect(struct pipeline *pipeline, const struct frame_to_store_record *disconnect,
                              struct now now) {
        const struct event ended = { .type = disconnect->connection > 0 ? EVENT_CONNECTION_CLOSED
                                                                        : EVENT_CLIENT_DISCONNECTED,
                                     .client = disconnect->client_id,
                                     .connection = disconnect->connection };

        engine_step(pipeline->state->engine, &ended, now, &pipeline->batch.effects);
        if (!disconnect->is_slow_watcher)
                return;
        pipeline->counters.n_slow_watchers++;
        client_log_slow_watcher(&pipeline->client_log, pipeline->state->engine, disconnect->client_id);
}

static void execute_control(struct pipeline *pipeline, const struct queue_item *item, struct now now) {
        const struct frame_request *request = &item->record.request;
        const struct message message = { .topic = SLICE_LITERAL(TOPIC_CONTROL),
                                         .payload = request->payload,
                                         .response_topic = request->response_topic,
                                         .correlation_data = request->correlation_data,
                                         .qos = request->qos };

        pipeline->control_item = item;
        pipeline->control_message = &message;
        pipeline->hooks->control(pipeline->hooks->userdata, &message, now);
        pipeline->control_item = NULL;
        pipeline->control_message = NULL;
}

/* Without the plugin's record, a client of a broker with the plugin may not be who it says. */
static void serve_item(struct pipeline *pipeline, struct queue_item *item, struct now now) {
        if (!peer_accepts(&pipeline->peer, item)) {
                if (item->kind == QUEUE_REQUEST)
                        drops_outside_frame(&pipeline->drops);
                return;
        }
        switch (item->kind) {
        case QUEUE_REQUEST:
                serve_request(pipeline, item, now);
                break;
        case QUEUE_DISCONNECT:
                report_disconnect(pipeline, &item->record, now);
                break;
        case QUEUE_CONTROL:
                execute_control(pipeline, item, now);
                break;
        }
}

/* An item that was served counts towards the limits of the batch and of the quantum. */
static void count_item(struct pipeline *pipeline, const struct queue_item *item) {
        struct histogram *latencies = pipeline->counters.latencies;
        int64_t start_ns = pipeline->clock.read_ns;

        work_clock_charge(&pipeline->clock, &pipeline->batch.work_ns);
        batch_add_item(&pipeline->batch, item->n_bytes, item->record.number);
        pipeline->upkeep.n_done++;
        if (item->kind != QUEUE_REQUEST)
                return;
        histogram_add(&latencies[LATENCY_QUEUE], start_ns - item->arrived_ns);
        histogram_add(&latencies[LATENCY_ENGINE], pipeline->clock.read_ns - start_ns);
}

void serve_waiting(struct pipeline *pipeline, struct now now) {
        struct queue_item *item;
        bool is_control = false;

        while (!is_control && (item = queue_first(&pipeline->queue)) && pipeline_can_step(pipeline) &&
               !work_clock_is_over(&pipeline->clock)) {
                is_control = item->kind == QUEUE_CONTROL;
                if (is_control && !batch_is_empty(&pipeline->batch))
                        break; /* test control may change state that the requests of a batch have used */
                serve_item(pipeline, item, now);
                count_item(pipeline, item);
                queue_pop(&pipeline->queue);
        }
        /* The caller reads before more is served. And test control may have changed the clock. */
        if (queue_first(&pipeline->queue))
                work_clock_end(&pipeline->clock);
}
