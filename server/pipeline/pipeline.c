/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creation, settings, time and state of the pipeline. execute.c, commit.c and publish.c process the
 * messages.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"

int pipeline_new(struct pipeline **ret_pipeline, const struct pipeline_config *config, struct state *state,
                 struct storage *storage) {
        struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

        if (!pipeline)
                return -ENOMEM;

        pipeline->transport = config->transport;
        pipeline->callbacks = config->callbacks;
        pipeline->encoder = (struct encoder){ .dialect = config->dialect,
                                              .node_id = slice_from_string(state->header.node_id) };
        pipeline->decoder = (struct decoder){
                .persistence_name = config->persistence_name,
                .persistence_value = slice_from_string(config->persistence_value),
        };
        pipeline->hello.deadline_ns = INT64_MAX;
        pipeline->delivered_deadline_ns = INT64_MAX;
        pipeline->hello.run = config->run;
        memcpy(pipeline->hello.secret, config->companion_secret, sizeof(config->companion_secret));
        pipeline->presence_topic = config->presence_topic;
        pipeline->requires_plugin = config->requires_plugin;
        pipeline->is_client_id_random = config->is_client_id_random;

        pipeline->key_states = pipeline->acknowledged_key_states = pipeline->published_key_states =
                state->header.key_states;
        memcpy(pipeline->hello.instance_id, state->header.instance_id, sizeof(state->header.instance_id));
        pipeline->state = state;
        pipeline->storage = storage;
        pipeline_set_max_packet(pipeline, MESSAGE_PACKET_MAX);
        *ret_pipeline = pipeline;
        return 0;
}

struct pipeline *pipeline_free(struct pipeline *pipeline) {
        if (!pipeline)
                return NULL;

        inflight_deinit(&pipeline->inflight);
        inbox_deinit(&pipeline->inbox);
        batch_deinit(&pipeline->batch);
        state_free(pipeline->state);
        policy_free(pipeline->policy);
        policy_free(pipeline->next_policy);
        encoder_deinit(&pipeline->encoder);
        storage_close(pipeline->storage);
        free(pipeline);
        return NULL;
}

bool pipeline_batch_is_open(const struct pipeline *pipeline) {
        return !pipeline->commit.is_in_flight && !pipeline->is_publishing;
}

bool pipeline_batch_is_full(const struct pipeline *pipeline) {
        const struct batch *batch = &pipeline->batch;
        struct storage_limits limits;

        if (batch_is_full(batch))
                return true;
        if (!pipeline->storage)
                return false;

        limits = storage_limits(pipeline->storage);
        return batch->effects.n_rows + batch->effects.n_changes >= limits.n_changes ||
               batch->n_bytes >= limits.n_bytes;
}

int pipeline_step(struct pipeline *pipeline, const struct event *event, struct now now) {
        int r;

        r = engine_step(pipeline->state->engine, event, now, &pipeline->batch.effects);
        batch_add_cost(&pipeline->batch);
        return r;
}

/* 1. Time */

/* Keys expire only while the broker kind is known: it determines how to notify the clients. */
static bool can_tick(const struct pipeline *pipeline) {
        return pipeline->broker_kind != BROKER_UNKNOWN && pipeline_batch_is_open(pipeline) &&
               !outbox_is_full(pipeline->state);
}

/*
 * Repeat small steps until no work is due, the quantum is over, or the batch is full. The next call
 * continues.
 */
static void tick_engine(struct pipeline *pipeline, struct now now) {
        struct event tick = { .type = EVENT_TICK };

        pipeline->execution_start_ns = now.mono_ns;
        do {
                if (pipeline_step(pipeline, &tick, now) < 0) {
                        pipeline->next_tick_ns = now.mono_ns + TICK_RETRY_NS;
                        return;
                }
                pipeline_charge_quantum(pipeline);
        } while (engine_next_deadline(pipeline->state->engine) <= now.mono_ns &&
                 !pipeline_batch_is_full(pipeline) && !pipeline_is_quantum_over(pipeline));
}

void pipeline_tick(struct pipeline *pipeline, struct now now) {
        if (now.mono_ns >= pipeline->hello.deadline_ns)
                companion_welcome_timed_out(pipeline, now);
        if (now.mono_ns >= pipeline->delivered_deadline_ns)
                notifications_delivered_timed_out(pipeline, now);
        if (pipeline->hooks)
                pipeline->hooks->tick(pipeline->hooks->userdata, now);
        if (can_tick(pipeline) && now.mono_ns >= pipeline->next_tick_ns)
                tick_engine(pipeline, now);
        pipeline_flush(pipeline, now);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns) {
        return a_ns < b_ns ? a_ns : b_ns;
}

int64_t pipeline_next_deadline(const struct pipeline *pipeline) {
        int64_t deadline_ns = can_tick(pipeline) ? engine_next_deadline(pipeline->state->engine) : INT64_MAX;

        if (!inbox_is_empty(&pipeline->inbox) && pipeline_can_execute(pipeline))
                return 0;

        if (deadline_ns < pipeline->next_tick_ns)
                deadline_ns = pipeline->next_tick_ns;
        if (pipeline->hooks)
                deadline_ns =
                        earlier(deadline_ns, pipeline->hooks->next_deadline(pipeline->hooks->userdata));
        deadline_ns = earlier(deadline_ns, pipeline->delivered_deadline_ns);
        return earlier(deadline_ns, pipeline->hello.deadline_ns);
}

/* 2. Settings */

void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks) {
        pipeline->hooks = hooks;
}

void pipeline_set_limits(struct pipeline *pipeline, const struct engine_config *config) {
        engine_set_limits(pipeline->state->engine, config);
}

void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes) {
        engine_set_packet_limits(pipeline->state->engine,
                                 encoder_packet_limits(&pipeline->encoder, n_bytes));
}

/*
 * Registrations end only while the broker kind is known, because the plugin must receive UNTRACK
 * for connections without registrations. Until then no request is executed and no key expires, so
 * no client is notified of a new change.
 */
void pipeline_apply_policy(struct pipeline *pipeline, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (pipeline->is_policy_pending) {
                policy_free(pipeline->policy);
                pipeline->policy = take_ptr(&pipeline->next_policy);
                pipeline->is_policy_pending = false;
                engine_set_policy(pipeline->state->engine, pipeline->policy);
        }
        if (pipeline->is_policy_new && pipeline->broker_kind != BROKER_UNKNOWN) {
                pipeline->is_policy_new = false;
                pipeline_step(pipeline, &changed, now);
        }
}

void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy, struct now now) {
        if (!policy && !pipeline->policy && !pipeline->is_policy_pending)
                return;

        policy_free(pipeline->next_policy);
        pipeline->next_policy = policy;
        pipeline->is_policy_pending = true;
        pipeline->is_policy_new = true;
        if (!pipeline_batch_is_open(pipeline))
                return;

        pipeline_apply_policy(pipeline, now);
        pipeline_flush(pipeline, now);
}

/* 3. State */

bool pipeline_is_idle(const struct pipeline *pipeline) {
        return pipeline_n_waiting_bytes(pipeline) == 0 && pipeline_batch_is_open(pipeline);
}

bool pipeline_check_progress(struct pipeline *pipeline) {
        bool had_work = pipeline->had_work_at_check;
        uint64_t n_done_before = pipeline->n_done_at_check;

        pipeline->n_done_at_check = pipeline->n_done;
        pipeline->had_work_at_check =
                (pipeline->commit.is_in_flight && !storage_is_waiting(pipeline->storage)) ||
                (!pipeline->commit.is_in_flight && !pipeline_is_idle(pipeline) &&
                 pipeline->broker_kind != BROKER_UNKNOWN && publish_has_room(pipeline) &&
                 !outbox_is_full(pipeline->state));
        return !had_work || !pipeline->had_work_at_check || pipeline->n_done != n_done_before;
}

size_t pipeline_n_waiting_bytes(const struct pipeline *pipeline) {
        return pipeline->inbox.n_bytes + pipeline->inbox.n_early_bytes;
}

const struct counters *pipeline_counters(const struct pipeline *pipeline) {
        return &pipeline->counters;
}

void pipeline_read_gauges(const struct pipeline *pipeline, int64_t wall_ms, struct gauges *ret_gauges) {
        const struct engine_config *config = engine_config(pipeline->state->engine);
        struct engine_stats stats = engine_stats(pipeline->state->engine);
        int64_t ahead_ms = stats.clock.wall_ms - wall_ms;

        *ret_gauges = (struct gauges){
                .n_keys = stats.n_keys,
                .n_bytes = stats.n_bytes,
                .n_registrations = stats.n_registrations,
                .n_remembered_replies = stats.n_remembered,
                .n_remembered_dropped_early = stats.n_dropped_early,
                .n_waiting_bytes = pipeline_n_waiting_bytes(pipeline),
                .n_pending_notifications = pipeline->state->notifications.n_pending,
                .max_keys = config->max_keys,
                .max_bytes = config->max_bytes,
                .max_registrations = config->max_registrations,
                .max_waiting_bytes = PIPELINE_INBOX_MAX,
                .clock_ahead_ms = ahead_ms > 0 ? (uint64_t)ahead_ms : 0,
                .broker_kind = pipeline->broker_kind,
                .is_connected = pipeline->is_connected,
                .is_plugin_detected = pipeline->is_plugin_detected,
                .is_plugin_required = pipeline->requires_plugin,
                .is_guarded = pipeline->broker_kind == BROKER_WITH_PLUGIN &&
                              (pipeline->is_guarded || pipeline->is_client_id_random),
                .is_storage_failing = pipeline->commit.has_failed,
        };
}
