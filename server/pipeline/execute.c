/* SPDX-License-Identifier: Apache-2.0 */

/* A message on the invoke topic, from its decoding until the batch has its answer. */

#include "pipeline/internal.h"

static int answer_error(struct pipeline *pipeline, enum outcome outcome) {
        int r;

        r = effects_reserve_reply(&pipeline->batch.effects);
        if (r < 0)
                return r;

        effects_reply(&pipeline->batch.effects)->outcome = outcome;
        return 0;
}

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

/* number: as batch_number_reply(). */
static void execute_answerable(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                               const struct invocation *invocation, uint64_t number, struct now now) {
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };
        const struct effects *effects = &pipeline->batch.effects;
        int r;

        r = batch_add_reply_address(&pipeline->batch, message, arrived_ns,
                                    invocation->outcome == OUTCOME_DONE ? invocation->request.verb
                                                                        : N_VERBS);
        if (r < 0) {
                sender_out_of_memory(&pipeline->sender);
                return;
        }
        batch_number_reply(&pipeline->batch, number);
        if (batch_is_over(&pipeline->batch, now.mono_ns)) {
                pipeline->counters.n_expired++;
                batch_forget_reply(&pipeline->batch);
                return;
        }
        if (invocation->fault != REQUEST_FAULT_NONE) {
                pipeline->counters.n_refused++;
                pipeline->counters.n_faults[invocation->fault]++;
                refusal_log_fault(&pipeline->refusal_log, invocation);
                batch_answer_fault(&pipeline->batch, &pipeline->sender, invocation->fault,
                                   invocation->fault_value, now);
                return;
        }

        if (invocation->outcome == OUTCOME_DONE) {
                r = pipeline_step(pipeline, &event, now);
        } else {
                pipeline->counters.n_refused++;
                pipeline->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
                r = answer_error(pipeline, invocation->outcome);
        }
        if (r < 0) {
                batch_forget_reply(&pipeline->batch);
                sender_out_of_memory(&pipeline->sender);
                return;
        }
        batch_place_reply(&pipeline->batch);
        refusal_log_outcome(&pipeline->refusal_log, pipeline->engine, &invocation->request,
                            effects->replies[effects->n_replies - 1].outcome, now);
}

void request_execute(struct pipeline *pipeline, const struct message *message, int64_t arrived_ns,
                     struct now now) {
        const struct hooks *hooks = pipeline->sender.hooks;
        struct invocation invocation;
        enum invocation_result result = invocation_decode(&pipeline->decoder, message, &invocation);
        uint64_t number = 0;

        /* it arrived while another broker, without the plugin, was served */
        if (pipeline->broker_kind == BROKER_WITH_PLUGIN && message->qos == 1 && !message->is_verified) {
                request_drop_unverified(pipeline);
                return;
        }
        if (hooks)
                number = hooks->request(hooks->userdata, &invocation,
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
                execute_answerable(pipeline, message, arrived_ns, &invocation, number, now);
                end_turn(pipeline, arrived_ns);
        }
}
