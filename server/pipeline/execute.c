/* SPDX-License-Identifier: Apache-2.0 */

/* A message on the invoke topic, from its decoding until the batch has its answer. */

#include "pipeline/hooks.h"
#include "pipeline/internal.h"

/* Ends the turn of one request: the next one's begins, with the same look at the clock. */
static void end_turn(struct pipeline *pipeline, int64_t arrived_ns) {
        struct histogram *latencies = pipeline->counters.latencies;
        int64_t from_ns = pipeline->turn_from_ns;

        if (!pipeline->transport.clock_ns)
                return;

        pipeline_charge(pipeline);
        histogram_add(&latencies[STAGE_QUEUE], from_ns - arrived_ns);
        histogram_add(&latencies[STAGE_ENGINE], pipeline->turn_from_ns - from_ns);
}

void request_drop_unverified(struct pipeline *pipeline) {
        pipeline->counters.n_drops[DROP_UNVERIFIED]++;
        log_limited(
                &pipeline->unverified_limit, LOG_WARNING,
                "a request was dropped that the plugin in the broker does not vouch for: a will, a message "
                "changed or repeated by somebody, or a client of a listener without the plugin");
}

/* Execute a request that is decoded. Return 0 or -ENOMEM. */
static int execute(struct pipeline *pipeline, const struct invocation *invocation, struct now now,
                   struct reply *ret_reply) {
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };
        int r;

        if (invocation->outcome != OUTCOME_DONE) {
                pipeline->counters.n_refused++;
                pipeline->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
                *ret_reply = (struct reply){ .outcome = invocation->outcome };
                return 0;
        }

        r = pipeline_step(pipeline, &event, now);
        if (r == 0)
                *ret_reply = effects_take_reply(&pipeline->batch.effects);
        return r;
}

static void execute_answerable(struct pipeline *pipeline, const struct pending_reply *address,
                               const struct invocation *invocation, struct now now) {
        struct pending_reply *pending;
        struct reply reply;

        if (pending_reply_is_expired(address, now.mono_ns)) {
                pipeline->counters.n_expired++;
                return;
        }
        if (invocation->fault != REQUEST_FAULT_NONE) {
                pipeline->counters.n_refused++;
                pipeline->counters.n_faults[invocation->fault]++;
                refusal_log_fault(&pipeline->refusal_log, invocation);
                publish_fault(pipeline, address, invocation->fault, invocation->fault_value, now);
                return;
        }

        pending = batch_add_reply(&pipeline->batch, address);
        if (!pending) {
                sender_out_of_memory(&pipeline->sender);
                return;
        }
        if (execute(pipeline, invocation, now, &reply) < 0) {
                batch_drop_reply(&pipeline->batch, pending);
                sender_out_of_memory(&pipeline->sender);
                return;
        }
        batch_complete_reply(&pipeline->batch, pending, reply);
        refusal_log_outcome(&pipeline->refusal_log, pipeline->engine, &invocation->request, reply.outcome,
                            now);
}

void request_execute(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                     struct now now) {
        const struct hooks *hooks = pipeline->hooks;
        struct invocation invocation;
        enum invocation_result result = invocation_decode(&pipeline->decoder, message, &invocation);
        struct pending_reply address = pending_reply_to(message, arrived_ns);

        /* it arrived while another broker, without the plugin, was served */
        if (pipeline->broker_kind == BROKER_WITH_PLUGIN && message->qos == 1 && !message->is_verified) {
                request_drop_unverified(pipeline);
                return;
        }
        if (hooks)
                address.number =
                        hooks->request(hooks->userdata, &invocation,
                                       result == INVOCATION_REQUEST || result == INVOCATION_REFUSED, now);

        switch (result) {
        case INVOCATION_NO_RESPONSE_TOPIC:
        case INVOCATION_BAD_RESPONSE_TOPIC:
                pipeline->counters.n_unanswerable++;
                refusal_log_unanswerable(&pipeline->refusal_log, &invocation.request);
                return;
        case INVOCATION_REFUSED:
        case INVOCATION_REQUEST:
                if (invocation.outcome == OUTCOME_DONE && invocation.request.has_timestamp)
                        counters_add_skew(&pipeline->counters, invocation.request.timestamp.wall_ms,
                                          now.wall_ms);
                if (invocation.outcome == OUTCOME_DONE)
                        address.verb = invocation.request.verb;
                execute_answerable(pipeline, &address, &invocation, now);
                end_turn(pipeline, arrived_ns);
        }
}
