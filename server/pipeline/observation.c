/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/observation.h"

#include "codec/encoder.h"
#include "pipeline/internal.h"

void pipeline_observe(struct pipeline *pipeline, struct event_log *events, struct client_table *clients) {
        pipeline->observation = (struct observation){ .events = events, .clients = clients };
}

/* 1. Events */

/* The event of this change. request: that has made it; NULL: none. */
static struct logged_event event_of_change(const struct change *change, const struct request *request,
                                           bool is_deleted, struct now now) {
        const struct entry *after = change->entry.after, *either = after ? after : change->entry.before;
        struct logged_event event = {
                .wall_ms = now.wall_ms,
                .kind = after ? LOGGED_SET : LOGGED_EXPIRE,
                .key = entry_key(either),
                .has_version = true,
                .version = entry_version(either),
                .n_bytes = after ? entry_value(after).length : 0,
                .verb = VERB_UNKNOWN,
        };

        if (is_deleted)
                event.kind = LOGGED_DELETE;
        if (request && event.kind != LOGGED_EXPIRE) {
                event.client = request->client;
                event.user = request->user;
                event.is_verified = request_origin_of(request).is_verified;
                event.verb = request->verb;
        }
        return event;
}

/* A request deletes its key by its last change; its other changes without a new entry are expired keys. */
static void add_changes(struct pipeline *pipeline, const struct request *request, bool is_deleted,
                        struct now now) {
        const struct effects *effects = &pipeline->batch.effects;
        size_t *n = &pipeline->observation.n_changes;

        for (; *n < effects->n_changes; ++*n) {
                const struct change *change = &effects->changes[*n];
                struct logged_event event;

                if (change->type != CHANGE_ENTRY)
                        continue;
                event = event_of_change(change, request,
                                        is_deleted && !change->entry.after &&
                                                slice_equal(entry_key(change->entry.before), request->key),
                                        now);
                event_log_add(pipeline->observation.events, &event);
        }
}

void observation_add_changes(struct pipeline *pipeline, struct now now) {
        if (pipeline->observation.events)
                add_changes(pipeline, NULL, false, now);
}

/* The text of the error that the request has got; absent: none. */
static struct slice error_text(const struct pending_reply *pending) {
        if (pending->fault != REQUEST_FAULT_NONE)
                return slice_from_string(request_fault_label(pending->fault));
        if (outcome_is_error(pending->reply.result.outcome))
                return encoder_error_text(pending->reply.result.outcome);
        return (struct slice){ 0 };
}

void observation_add_request(struct pipeline *pipeline, const struct invocation *invocation,
                             const struct pending_reply *pending, struct now now) {
        const struct request *request = &invocation->request;
        struct request_origin origin = request_origin_of(request);
        struct slice error = error_text(pending);
        struct logged_event refused = {
                .wall_ms = now.wall_ms,
                .kind = LOGGED_REFUSED,
                .key = request->key,
                .client = request->client,
                .user = request->user,
                .is_verified = origin.is_verified,
                .n_bytes = request->payload.length,
                .verb = request->verb,
                .error = error,
        };

        if (!pipeline->observation.events)
                return;
        add_changes(pipeline, request, pending->reply.result.outcome == OUTCOME_DELETED, now);
        if (error.data)
                event_log_add(pipeline->observation.events, &refused);
        client_table_count(pipeline->observation.clients, &origin, request->payload.length, error.data,
                           now.wall_ms);
}

void observation_end_batch(struct pipeline *pipeline, enum outcome outcome) {
        struct event_log *events = pipeline->observation.events;

        pipeline->observation.n_changes = 0;
        if (!events)
                return;
        if (outcome == OUTCOME_DONE)
                event_log_commit(events);
        else
                event_log_roll_back(events, encoder_error_text(outcome));
}

/* 2. The present state */

struct registration_usage pipeline_client_usage(const struct pipeline *pipeline, struct slice client) {
        return engine_client_usage(pipeline->state->engine, client);
}

struct entry *pipeline_find_entry(const struct pipeline *pipeline, struct slice key, struct now now) {
        struct entry *entry = engine_find_entry(pipeline->state->engine, key);

        return entry && engine_deadline(pipeline->state->engine, entry) > now.mono_ns ? entry : NULL;
}

int64_t pipeline_expires_in_ms(const struct pipeline *pipeline, struct entry *entry, struct now now) {
        int64_t deadline_ns = engine_deadline(pipeline->state->engine, entry);

        if (deadline_ns == DEADLINE_NEVER)
                return INT64_MAX;
        return (deadline_ns - now.mono_ns - 1) / NS_PER_MS + 1;
}

/* A position among all: the number of the shard, and the registrations before it in the shard. */
#define POSITION_SHARD_SHIFT 32

static uint64_t list_all(const struct engine *engine, uint64_t position,
                         void (*take)(void *userdata, const struct registration *registration),
                         void *userdata) {
        struct registration_cursor cursor = { .n_shards_begun =
                                                      (uint32_t)(position >> POSITION_SHARD_SHIFT) };
        uint64_t n_skipped = position & UINT32_MAX, n_in_shard = 0;
        uint32_t shard = cursor.n_shards_begun + 1;
        const struct registration *registration;

        if (cursor.n_shards_begun > REGISTRATIONS_N_SHARDS)
                return 0;
        for (size_t n = 0; (registration = engine_each_registration(engine, &cursor));) {
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
                return list_all(engine, query->position, take, userdata);

        registration = query->key.data ? engine_registrations_of_key(engine, query->key)
                                       : engine_registrations_of_client(engine, query->client);
        while (registration && n < WATCHERS_POSITION_MAX && n < query->position + WATCHERS_PAGE_MAX) {
                if (n++ >= query->position)
                        take(userdata, registration);
                registration = query->key.data ? registration_next_of_key(registration)
                                               : registration->next_of_client;
        }
        return registration && n < WATCHERS_POSITION_MAX ? n : 0;
}
