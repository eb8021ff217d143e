/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/inspection.h"

#include <errno.h>

#include "pipeline/internal.h"

/* 1. The state that pipeline.h lists */

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
                .plugin = pipeline->plugin_counters,
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

/* 2. For the console and test control */

void pipeline_observe(struct pipeline *pipeline, struct event_log *events, struct client_table *clients) {
        pipeline->observation = (struct observation){ .events = events, .clients = clients };
}

enum broker_kind pipeline_broker_kind(const struct pipeline *pipeline) {
        return peer_broker_kind(&pipeline->peer);
}

void pipeline_append_version(const struct pipeline *pipeline, struct version version, struct buf *text) {
        const struct encoder *encoder = &pipeline->encoder;

        hlc_append(text, (struct hlc){ version.wall_ms, version.counter, encoder->node_id },
                   encoder->dialect == DIALECT_SDK ? HLC_PADDED : HLC_UNPADDED);
}

struct registration_usage pipeline_client_usage(const struct pipeline *pipeline, struct slice client) {
        return engine_client_usage(pipeline->state->engine, client);
}

struct entry *pipeline_find_entry(const struct pipeline *pipeline, struct slice key, struct now now) {
        const struct engine *engine = pipeline->state->engine;
        struct entry *entry = engine_find_entry(engine, key);

        return entry && keyspace_deadline(engine_keyspace(engine), entry) > now.mono_ns ? entry : NULL;
}

int64_t pipeline_expires_in_ms(const struct pipeline *pipeline, struct entry *entry, struct now now) {
        int64_t deadline_ns = keyspace_deadline(engine_keyspace(pipeline->state->engine), entry);

        if (deadline_ns == DEADLINE_NEVER)
                return INT64_MAX;
        return (deadline_ns - now.mono_ns - 1) / NS_PER_MS + 1;
}

/* A position among all: the number of the shard, and the registrations before it in the shard. */
#define POSITION_SHARD_SHIFT 32

static uint64_t list_all(const struct registrations *registrations, uint64_t position,
                         void (*take)(void *userdata, const struct registration *registration),
                         void *userdata) {
        struct registration_cursor cursor = { .n_shards_begun =
                                                      (uint32_t)(position >> POSITION_SHARD_SHIFT) };
        uint64_t n_skipped = position & UINT32_MAX, n_in_shard = 0;
        uint32_t shard = cursor.n_shards_begun + 1;
        const struct registration *registration;

        if (cursor.n_shards_begun > REGISTRATIONS_N_SHARDS)
                return 0;
        for (size_t n = 0; (registration = registrations_each(registrations, &cursor));) {
                if (cursor.n_shards_begun != shard) {
                        shard = cursor.n_shards_begun;
                        n_in_shard = n_skipped = 0;
                }
                if (n_in_shard++ < n_skipped)
                        continue;
                if (n++ == WATCHERS_PAGE_MAX)
                        return (uint64_t)(shard - 1) << POSITION_SHARD_SHIFT | (n_in_shard - 1);
                take(userdata, registration);
        }
        return 0;
}

uint64_t pipeline_list_watchers(const struct pipeline *pipeline, const struct watchers_query *query,
                                void (*take)(void *userdata, const struct registration *registration),
                                void *userdata) {
        const struct engine *engine = pipeline->state->engine;
        const struct registration *registration;
        uint64_t n = 0;

        if (!query->key.data && !query->client.data)
                return list_all(engine_registrations(engine), query->position, take, userdata);

        registration = query->key.data
                               ? engine_registrations_of_key(engine, query->key)
                               : registrations_of_client(engine_registrations(engine), query->client);
        while (registration && n < WATCHERS_POSITION_MAX && n < query->position + WATCHERS_PAGE_MAX) {
                if (n++ >= query->position)
                        take(userdata, registration);
                registration = query->key.data ? registration_next_of_key(registration)
                                               : registration->next_of_client;
        }
        return registration && n < WATCHERS_POSITION_MAX ? n : 0;
}
