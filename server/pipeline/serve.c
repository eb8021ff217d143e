/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Serve the items of the queue: decode a request, let the engine execute it, and put its reply into
 * the batch. An item is served only in an open batch.
 */

#include "pipeline/hooks.h"
#include "pipeline/internal.h"

/* Update the largest skew of a request's timestamp, ahead of the wall clock or behind it. */
static void count_skew(struct counters *counters, int64_t timestamp_ms, int64_t wall_ms) {
        uint64_t *max = timestamp_ms > wall_ms ? &counters->ahead_max_ms : &counters->behind_max_ms;
        uint64_t skew_ms = timestamp_ms > wall_ms ? (uint64_t)timestamp_ms - (uint64_t)wall_ms
                                                  : (uint64_t)wall_ms - (uint64_t)timestamp_ms;

        if (skew_ms > *max)
                *max = skew_ms;
}

/* 1. A request */

/* Count the fault or the error that decoding has found. */
static void count_refusal(struct counters *counters, const struct invocation *invocation) {
        if (invocation->result == INVOCATION_FAULTY)
                counters->n_faults[invocation->fault]++;
        else
                counters->n_refusals[invocation->request.verb][invocation->outcome]++;
}

/* Make room for the reply first: without memory for it nothing is executed. */
static void reply_to_request(struct pipeline *pipeline, const struct invocation *invocation,
                             int64_t arrived_ns, uint64_t hook_number, struct now now) {
        struct engine *engine = pipeline->state->engine;
        struct batch *batch = &pipeline->batch;
        struct pending_reply *pending = batch_add_reply(batch, invocation, arrived_ns);
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };

        if (!pending) {
                outbox_lose_reply(&pipeline->outbox);
                return;
        }
        pending->hook_number = hook_number;
        if (invocation->result == INVOCATION_REQUEST) {
                event.reply = &pending->reply;
                engine_step(engine, &event, now, &batch->effects);
        } else {
                pending->reply.result.outcome = invocation->outcome;
                count_refusal(&pipeline->counters, invocation);
        }
        if (invocation->result == INVOCATION_FAULTY)
                client_log_fault(&pipeline->client_log, engine, invocation);
        else if (outcome_is_error(pending->reply.result.outcome))
                client_log_refusal(&pipeline->client_log, engine, &invocation->request,
                                   pending->reply.result.outcome, now);
        pending->n_preceding_changes = batch->effects.n_changes;
        batch_add_payload(batch, &pending->reply);
}

/* Returns false if the request was dropped: there is no topic for a reply. */
static bool serve_request(struct pipeline *pipeline, const struct queue_item *item, struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        struct invocation invocation;
        uint64_t hook_number = 0;

        invocation_decode(&pipeline->decoder, &item->request, &invocation);
        invocation.request.id = (struct request_id){ pipeline->peer.broker_run, item->number };
        if (hooks)
                hook_number = hooks->request(hooks->userdata, &invocation, now);
        if (invocation.result == INVOCATION_NO_RESPONSE_TOPIC ||
            invocation.result == INVOCATION_BAD_RESPONSE_TOPIC) {
                pipeline->counters.n_invalid_response_topics++;
                client_log_invalid_response_topic(&pipeline->client_log, pipeline->state->engine,
                                                  &invocation.request);
                return false;
        }
        if (invocation.result == INVOCATION_REQUEST && invocation.request.has_timestamp)
                count_skew(&pipeline->counters, invocation.request.timestamp.wall_ms, now.wall_ms);

        if (expiry_rest_s(item->request.has_expiry, item->request.expiry_s,
                          now.mono_ns - item->arrived_ns) == 0)
                pipeline->counters.n_expired++;
        else
                reply_to_request(pipeline, &invocation, item->arrived_ns, hook_number, now);
        return true;
}

/* 2. An item */

static void serve_disconnect(struct pipeline *pipeline, const struct queued_disconnect *disconnect,
                             struct now now) {
        const struct event ended = { .type = disconnect->connection > 0 ? EVENT_CONNECTION_CLOSED
                                                                        : EVENT_CLIENT_DISCONNECTED,
                                     .client = disconnect->client_id,
                                     .connection = disconnect->connection };

        pipeline_step(pipeline, &ended, now);
        if (!disconnect->is_slow_watcher)
                return;
        pipeline->counters.n_slow_watchers++;
        client_log_slow_watcher(&pipeline->client_log, pipeline->state->engine, disconnect->client_id);
}

/* Serve the item, and count its cost towards the limits of the batch and of the quantum. */
static void serve_item(struct pipeline *pipeline, const struct queue_item *item, struct now now) {
        struct histogram *latencies = pipeline->counters.latencies;
        struct batch *batch = &pipeline->batch;
        int64_t start_ns = pipeline->quantum.read_ns;
        bool has_latency = false;

        batch_add_item(batch, item->n_bytes, item->number);
        switch (item->kind) {
        case QUEUE_REQUEST:
                has_latency = serve_request(pipeline, item, now);
                break;
        case QUEUE_DISCONNECT:
                serve_disconnect(pipeline, &item->disconnect, now);
                break;
        case QUEUE_CONTROL:
                pipeline->hooks->control(pipeline->hooks->userdata, item->message, now);
                break;
        }
        pipeline->upkeep.n_done++;
        /* The end of this work is the start of the next: the clock is read once. */
        pipeline_charge(pipeline);
        if (has_latency) {
                histogram_add(&latencies[STAGE_QUEUE], start_ns - item->arrived_ns);
                histogram_add(&latencies[STAGE_ENGINE], pipeline->quantum.read_ns - start_ns);
        }
}

/* 3. Waiting items */

/* If the broker does not keep up, replies would only need memory. */
bool serve_can_begin(const struct pipeline *pipeline) {
        return pipeline->outbox.is_open && pipeline->batch.state == BATCH_OPEN &&
               outbox_has_room(&pipeline->outbox) && !commit_is_due(pipeline) &&
               !outbox_is_full(&pipeline->outbox);
}

/*
 * Test control is served only in an empty batch: it may change state that the requests of a batch
 * have used.
 */
static bool can_serve(const struct pipeline *pipeline, const struct queue_item *item) {
        return serve_can_begin(pipeline) &&
               (item->kind != QUEUE_CONTROL || batch_is_empty(&pipeline->batch));
}

void serve_waiting(struct pipeline *pipeline, struct now now) {
        const struct queue_item *item;
        bool may_continue = true;

        while (may_continue && !quantum_is_over(&pipeline->quantum) &&
               (item = queue_first(&pipeline->queue)) && can_serve(pipeline, item)) {
                /* test control may change the test clock: `now` is old then */
                may_continue = item->kind != QUEUE_CONTROL;
                if (peer_accepts(&pipeline->peer, item))
                        serve_item(pipeline, item, now);
                else /* it arrived before the broker kind was known */
                        drops_outside_frame(&pipeline->drops, item);
                queue_drop(&pipeline->queue);
        }
}
