/* SPDX-License-Identifier: Apache-2.0 */

/* Settings of the pipeline, and what it shows. */

#include <errno.h>

#include "base/cleanup.h"
#include "pipeline/hooks.h"
#include "pipeline/internal.h"

/* 1. Settings */

void pipeline_set_hooks(struct pipeline *pipeline, const struct hooks *hooks) {
        pipeline->hooks = hooks;
        pipeline->outbox.hooks = hooks;
        pipeline->queue.takes_control = hooks && hooks->control;
}

void pipeline_set_log_keys(struct pipeline *pipeline, bool shows_keys) {
        pipeline->client_log.shows_keys = shows_keys;
}

void pipeline_set_limits(struct pipeline *pipeline, struct engine_limits limits) {
        engine_set_limits(pipeline->state->engine, limits);
}

void pipeline_set_max_packet(struct pipeline *pipeline, uint64_t n_bytes) {
        outbox_frames_set_max_packet(&pipeline->frames, n_bytes);
        engine_set_packet_limits(pipeline->state->engine,
                                 encoder_packet_limits(&pipeline->encoder, n_bytes));
}

void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy) {
        if (!policy && !pipeline->policy && !pipeline->has_next_policy)
                return;

        policy_free(pipeline->next_policy);
        pipeline->next_policy = policy;
        pipeline->has_next_policy = true;
}

void settings_apply_policy(struct pipeline *pipeline, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (!pipeline->has_next_policy || pipeline->outbox.status != OUTBOX_OPEN)
                return;

        pipeline->has_next_policy = false;
        policy_free(pipeline->policy);
        pipeline->policy = take_ptr(&pipeline->next_policy);
        engine_set_policy(pipeline->state->engine, pipeline->policy);
        engine_step(pipeline->state->engine, &changed, now, &pipeline->batch.effects);
}

/* 2. State */

bool pipeline_is_idle(const struct pipeline *pipeline) {
        return pipeline_n_waiting_bytes(pipeline) == 0 && pipeline->batch.state == BATCH_OPEN;
}

size_t pipeline_n_waiting_bytes(const struct pipeline *pipeline) {
        return queue_n_bytes(&pipeline->queue);
}

const struct counters *pipeline_counters(const struct pipeline *pipeline) {
        return &pipeline->counters;
}

void pipeline_read_gauges(const struct pipeline *pipeline, int64_t wall_ms, struct gauges *ret_gauges) {
        const struct engine_config *config = engine_config(pipeline->state->engine);
        struct engine_stats stats = engine_stats(pipeline->state->engine);
        const struct peer *peer = &pipeline->peer;
        int64_t ahead_ms = stats.clock.wall_ms - wall_ms;

        *ret_gauges = (struct gauges){
                .n_keys = stats.n_keys,
                .n_bytes = stats.n_bytes,
                .n_registrations = stats.n_registrations,
                .n_remembered_replies = stats.n_remembered,
                .n_remembered_dropped_early = stats.n_dropped_early,
                .n_waiting_bytes = pipeline_n_waiting_bytes(pipeline),
                .plugin = pipeline->queue.counters,
                .n_pending_notifications = pipeline->state->notifications.n_pending,
                .max_keys = config->limits.max_keys,
                .max_bytes = config->limits.max_bytes,
                .max_registrations = config->limits.max_registrations,
                .max_waiting_bytes = PIPELINE_WAITING_MAX,
                .clock_ahead_ms = ahead_ms > 0 ? (uint64_t)ahead_ms : 0,
                .broker_kind = peer_broker_kind(peer),
                .is_connected = peer->state != PEER_DOWN,
                .is_plugin_detected = peer->is_plugin_detected,
                .is_plugin_required = peer->requires_plugin,
                .is_storage_failing = pipeline->commit.error < 0,
                .is_disk_full = pipeline->commit.error == -ENOSPC,
                .lease_left_ns = pipeline->storage ? storage_lease_left_ns(pipeline->storage) : INT64_MAX,
                .is_storage_waiting = pipeline->storage && storage_is_waiting(pipeline->storage),
        };
        ret_gauges->has_disk = pipeline->storage && storage_usage(pipeline->storage, &ret_gauges->disk);
}
