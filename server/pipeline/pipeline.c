/* SPDX-License-Identifier: Apache-2.0 */

/* Creation, settings and state of the pipeline, and the events of the broker. */

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

        *pipeline = (struct pipeline){
                .state = state,
                .storage = storage,
                .transport = config->transport,
                .callbacks = config->callbacks,
                .encoder = { .dialect = config->dialect,
                             .node_id = slice_from_string(state->header.node_id) },
                .decoder = { .persistence_name = config->persistence_name,
                             .persistence_value = slice_from_string(config->persistence_value) },
                .cycle.commit_error = config->is_disk_full ? -ENOSPC : 0,
                .drops.counters = &pipeline->counters,
                .queue = { .decoder = &pipeline->decoder, .presence_topic = config->presence_topic },
                .quantum = { .transport = &pipeline->transport, .limit_ns = QUANTUM_NS },
                .outbox = { .state = state,
                            .transport = &pipeline->transport,
                            .drops = &pipeline->drops,
                            .encoder = &pipeline->encoder,
                            .quantum = &pipeline->quantum },
                .messages.outbox = &pipeline->outbox,
                .frames = { .outbox = &pipeline->outbox, .deadline_ns = INT64_MAX },
                .peer = { .deadline_ns = INT64_MAX,
                          .requires_plugin = config->requires_plugin,
                          .run = config->run,
                          .instance_id = slice_from_string(state->header.instance_id) },
        };
        memcpy(pipeline->peer.secret, config->companion_secret, sizeof(config->companion_secret));
        pipeline_set_max_packet(pipeline, MESSAGE_PACKET_MAX);
        *ret_pipeline = pipeline;
        return 0;
}

struct pipeline *pipeline_free(struct pipeline *pipeline) {
        if (!pipeline)
                return NULL;

        outbox_messages_deinit(&pipeline->messages);
        outbox_frames_deinit(&pipeline->frames);
        queue_deinit(&pipeline->queue);
        batch_deinit(&pipeline->cycle.batch);
        state_free(pipeline->state);
        policy_free(pipeline->policy);
        policy_free(pipeline->next_policy);
        encoder_deinit(&pipeline->encoder);
        storage_close(pipeline->storage);
        free(pipeline);
        return NULL;
}

/* 1. The broker */

void pipeline_plugin_detected(struct pipeline *pipeline) {
        pipeline->peer.is_plugin_detected = true;
}

void pipeline_connected(struct pipeline *pipeline, bool session_present, struct now now) {
        pipeline->counters.n_connections++;
        peer_connected(pipeline, session_present);
        cycle_flush(pipeline, now);
}

void pipeline_disconnected(struct pipeline *pipeline) {
        peer_disconnected(pipeline);
}

/*
 * Ignore no_subscriber while the batch is not open: the PUBACK of the next notification reports it
 * again.
 */
void pipeline_acknowledged(struct pipeline *pipeline, uint16_t id, bool no_subscriber, struct now now) {
        struct event notified = { .type = no_subscriber ? EVENT_NOT_DELIVERED : EVENT_DELIVERED };

        notified.registration = outbox_messages_acknowledged(&pipeline->messages, id);
        if (notified.registration && pipeline->cycle.state == CYCLE_OPEN)
                cycle_step(pipeline, &notified, now);
        registration_unref(notified.registration);
}

void pipeline_count_out_of_memory(struct pipeline *pipeline) {
        drops_out_of_memory(&pipeline->drops);
}

static void receive_message(struct pipeline *pipeline, const struct message *message, struct now now) {
        struct queue_item item;
        int r;

        if (!queue_read_message(&pipeline->queue, message, now.mono_ns, &item))
                return;
        if (!peer_accepts(&pipeline->peer, &item)) {
                drops_outside_frame(&pipeline->drops, &item);
                return;
        }

        r = queue_add(&pipeline->queue, &item, PIPELINE_WAITING_MAX);
        if (r == -ENOBUFS)
                drops_beyond_share(&pipeline->drops, message, queue_n_bytes(&pipeline->queue),
                                   PIPELINE_WAITING_MAX);
        else if (r < 0)
                drops_out_of_memory(&pipeline->drops);
}

void pipeline_receive(struct pipeline *pipeline, const struct message *message, struct now now) {
        if (!peer_receive(pipeline, message, now))
                receive_message(pipeline, message, now);
        /* Publish the reply now, so that the broker forwards it while the store reads the next request. */
        if (!pipeline->storage && !quantum_is_over(&pipeline->quantum))
                cycle_advance(pipeline, now);
}

/* 2. Settings */

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
        pipeline->frames.packet_bytes_max = n_bytes;
        engine_set_packet_limits(pipeline->state->engine,
                                 encoder_packet_limits(&pipeline->encoder, n_bytes));
}

void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy, struct now now) {
        if (!policy && !pipeline->policy && !pipeline->has_next_policy)
                return;

        policy_free(pipeline->next_policy);
        pipeline->next_policy = policy;
        pipeline->has_next_policy = true;
        cycle_flush(pipeline, now);
}

/* 3. State */

bool pipeline_is_idle(const struct pipeline *pipeline) {
        return pipeline_n_waiting_bytes(pipeline) == 0 && pipeline->cycle.state == CYCLE_OPEN;
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
                .is_storage_failing = pipeline->cycle.commit_error < 0,
                .is_disk_full = pipeline->cycle.commit_error == -ENOSPC,
        };
        ret_gauges->has_disk = pipeline->storage && storage_usage(pipeline->storage, &ret_gauges->disk);
}
