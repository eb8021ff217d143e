/* SPDX-License-Identifier: Apache-2.0 */

/* A message on the invoke topic, from its decoding until the batch has its answer. */

#include "pipeline/internal.h"

static int answer_error(struct daemon *daemon, enum outcome outcome) {
        int r;

        r = effects_reserve_reply(&daemon->batch.effects);
        if (r < 0)
                return r;

        effects_reply(&daemon->batch.effects)->outcome = outcome;
        return 0;
}

/* Ends the turn of one request: the next one's begins, with the same look at the clock. */
static void end_turn(struct daemon *daemon, int64_t arrived_ns) {
        struct histogram *latencies = daemon->counters.latencies;
        int64_t from_ns = daemon->turn_from_ns;

        if (!daemon->outlet.clock_ns)
                return;

        daemon_charge(daemon);
        histogram_add(&latencies[STAGE_QUEUE], from_ns - arrived_ns);
        histogram_add(&latencies[STAGE_ENGINE], daemon->turn_from_ns - from_ns);
}

void request_drop_unverified(struct daemon *daemon) {
        daemon->counters.n_drops[DROP_UNVERIFIED]++;
        log_limited(
                &daemon->unverified_limit, LOG_WARNING,
                "a request was dropped that the plugin in the broker does not vouch for: a will, a message "
                "changed or repeated by somebody, or a client of a listener without the plugin");
}

/* number: as batch_number_reply(). */
static void execute_answerable(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                               const struct invocation *invocation, uint64_t number, struct now now) {
        struct event event = { .type = EVENT_REQUEST, .request = &invocation->request };
        const struct effects *effects = &daemon->batch.effects;
        int r;

        r = batch_expect_reply(&daemon->batch, message, arrived_ns,
                               invocation->outcome == OUTCOME_DONE ? invocation->request.verb : N_VERBS);
        if (r < 0) {
                publisher_lost(&daemon->publisher);
                return;
        }
        batch_number_reply(&daemon->batch, number);
        if (batch_is_over(&daemon->batch, now.mono_ns)) {
                daemon->counters.n_expired++;
                batch_forget_reply(&daemon->batch);
                return;
        }
        if (invocation->fault != ENVELOPE_OK) {
                daemon->counters.n_refused++;
                daemon->counters.n_faults[invocation->fault]++;
                refusal_log_fault(&daemon->refusal_log, invocation);
                batch_answer_fault(&daemon->batch, &daemon->publisher, invocation->fault,
                                   invocation->fault_value, now);
                return;
        }

        if (invocation->outcome == OUTCOME_DONE) {
                r = daemon_step(daemon, &event, now);
        } else {
                daemon->counters.n_refused++;
                daemon->counters.n_refusals[invocation->request.verb][invocation->outcome]++;
                r = answer_error(daemon, invocation->outcome);
        }
        if (r < 0) {
                batch_forget_reply(&daemon->batch);
                publisher_lost(&daemon->publisher);
                return;
        }
        batch_place_reply(&daemon->batch);
        refusal_log_outcome(&daemon->refusal_log, daemon->engine, &invocation->request,
                            effects->replies[effects->n_replies - 1].outcome, now);
}

void request_execute(struct daemon *daemon, const struct message *message, int64_t arrived_ns,
                     struct now now) {
        const struct hooks *hooks = daemon->publisher.hooks;
        struct invocation invocation;
        enum invocation_result result = invocation_decode(&daemon->decoder, message, &invocation);
        uint64_t number = 0;

        /* it arrived while another broker, without the plugin, was served */
        if (daemon->side == BROKER_SIDE_PROVEN && message->qos == 1 && !message->is_verified) {
                request_drop_unverified(daemon);
                return;
        }
        if (hooks)
                number = hooks->request(hooks->userdata, &invocation,
                                        result == INVOCATION_REQUEST || result == INVOCATION_REFUSED, now);

        switch (result) {
        case INVOCATION_NO_RESPONSE_TOPIC:
        case INVOCATION_BAD_RESPONSE_TOPIC:
                daemon->counters.n_unanswerable++;
                refusal_log_unanswerable(&daemon->refusal_log, &invocation.request);
                return;
        case INVOCATION_REFUSED:
        case INVOCATION_REQUEST:
                if (invocation.outcome == OUTCOME_DONE && invocation.request.has_timestamp)
                        counters_add_skew(&daemon->counters, invocation.request.timestamp.wall_ms,
                                          now.wall_ms);
                execute_answerable(daemon, message, arrived_ns, &invocation, number, now);
                end_turn(daemon, arrived_ns);
        }
}
