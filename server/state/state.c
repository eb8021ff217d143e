/* SPDX-License-Identifier: Apache-2.0 */

#include "state/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time_units.h"

/*
 * A reply is remembered for at most this time after it was applied, even if its stored time is
 * later.
 */
#define REMEMBERED_MAX_NS ((ENGINE_REMEMBERED_MAX_S + 1) * NS_PER_S)

CLEANUP_FUNCTION(cleanup_state, struct state *, state_free)

/* Returns 0 or -EBADMSG. */
static int choose_node_id(struct state_header *header, struct slice configured) {
        bool is_fixed = header->n_commits > 0;

        if (configured.data && is_fixed && !slice_equal(configured, slice_from_string(header->node_id)))
                return -EBADMSG;
        if (configured.data && !is_fixed)
                snprintf(header->node_id, sizeof(header->node_id), "%.*s", (int)configured.length,
                         (const char *)configured.data);
        if (!*header->node_id)
                snprintf(header->node_id, sizeof(header->node_id), "%s", NODE_ID_DEFAULT);
        return 0;
}

int state_new(struct state **ret_state, const struct engine_config *config,
              const struct state_header *header, struct now now) {
        CLEANUP(cleanup_state) struct state *state = calloc(1, sizeof(*state));
        struct engine_config engine = *config;
        int r;

        if (!state)
                return -ENOMEM;

        state->header = *header;
        state->timescale = timescale_resume(header->reading_ms, header->shift_ms, now);
        state->notifications.last_sequence = header->notification_sequence;
        r = choose_node_id(&state->header, config->node_id);
        if (r < 0)
                return r;
        engine.node_id = slice_from_string(state->header.node_id);
        engine.table_key = header->table_key;
        engine.token_key = header->token_key;
        engine.digest_key = header->digest_key;
        r = engine_new(&state->engine, &engine);
        if (r < 0)
                return r;

        engine_set_clock(state->engine, header->clock);
        *ret_state = take_ptr(&state);
        return 0;
}

struct state *state_free(struct state *state) {
        if (!state)
                return NULL;

        notification_queue_deinit(&state->notifications);
        change_buffer_deinit(&state->changes);
        engine_free(state->engine);
        free(state->forgotten);
        free(state);
        return NULL;
}

/* 1. Applying */

static int apply_entry(struct state *state, const struct entry_change *change) {
        struct entry_fields fields = { .key = change->key,
                                       .value = change->value,
                                       .version = change->version,
                                       .deadline_ns = DEADLINE_NEVER,
                                       .fence = change->has_fence ? &change->fence : NULL };

        if (!change->value.data) {
                engine_remove_entry(state->engine, change->key);
                return 0;
        }
        if (change->expires_at_ms != EXPIRES_NEVER)
                fields.deadline_ns = timescale_to_deadline(state->timescale, change->expires_at_ms);
        return engine_put_entry(state->engine, &fields);
}

static int apply_registration(struct state *state, const struct registration_change *change) {
        if (!change->is_removed)
                return engine_put_registration(state->engine, change->client, change->user, change->key,
                                               change->connection);

        engine_remove_registration(state->engine, change->client, change->key);
        return 0;
}

static int apply_reply(struct state *state, const struct reply_change *change, struct now now) {
        struct reply_row row = {
                .digest = change->digest,
                .result = change->result,
                .deadline_ns = timescale_to_deadline(state->timescale, change->forget_at_ms),
                .number = change->number,
        };

        if (row.deadline_ns < 0)
                row.deadline_ns = 0;
        if (row.deadline_ns > now.mono_ns + REMEMBERED_MAX_NS)
                row.deadline_ns = now.mono_ns + REMEMBERED_MAX_NS;
        return engine_put_reply(state->engine, &row);
}

int state_apply(struct state *state, const struct change_set *change_set, struct now now) {
        int r = 0;

        state_acknowledge(state, change_set->acknowledged);
        for (size_t i = 0; i < change_set->n_entries && r == 0; i++)
                r = apply_entry(state, &change_set->entries[i]);
        for (size_t i = 0; i < change_set->n_registrations && r == 0; i++)
                r = apply_registration(state, &change_set->registrations[i]);
        for (size_t i = 0; i < change_set->n_replies && r == 0; i++)
                r = apply_reply(state, &change_set->replies[i], now);
        for (size_t i = 0; i < change_set->n_executions && r == 0; i++)
                r = engine_put_execution(state->engine, &change_set->executions[i]);
        for (size_t i = 0; i < change_set->n_forgotten; i++)
                engine_forget_reply(state->engine, &change_set->forgotten[i]);
        engine_forget_replies_up_to(state->engine, change_set->forgotten_up_to);
        for (size_t i = 0; i < change_set->n_notifications && r == 0; i++)
                r = notification_queue_add(&state->notifications, &change_set->notifications[i]);
        engine_set_clock(state->engine, change_set->header.clock);
        state->header = change_set->header;
        state->acknowledged_stored = state->acknowledged;
        return r;
}

/* 2. Committing */

int state_stage(struct state *state, const struct effects *effects) {
        return notification_queue_stage(&state->notifications, effects);
}

static int gather_forgotten(struct state *state, const struct effects *effects) {
        int r;

        r = array_reserve((void **)&state->forgotten, &state->forgotten_capacity,
                          state->n_forgotten + effects->n_forgotten, sizeof(*state->forgotten));
        if (r < 0)
                return r;

        for (size_t i = 0; i < effects->n_forgotten; i++)
                state->forgotten[state->n_forgotten++] = effects->forgotten[i];
        return 0;
}

static struct state_header next_header(const struct state *state, const struct engine_stats *stats,
                                       struct now now) {
        struct state_header header = state->header;

        header.n_commits++;
        header.clock = stats->clock;
        header.keys_may_be_lost = engine_may_lose_keys(state->engine);
        header.notification_sequence = state->notifications.last_sequence;
        header.reading_ms = timescale_read(state->timescale, now);
        header.shift_ms = timescale_shift(state->timescale, now);
        return header;
}

int state_change_set(struct state *state, const struct effects *effects, struct now now,
                     struct change_set *ret_change_set) {
        struct engine_stats stats = engine_stats(state->engine);
        int r;

        r = gather_forgotten(state, effects);
        if (r == 0)
                r = change_buffer_fill(&state->changes, effects, &engine_config(state->engine)->table_key,
                                       state->timescale);
        if (r < 0)
                return r;

        *ret_change_set = (struct change_set){
                .header = next_header(state, &stats, now),
                .entries = state->changes.entries,
                .n_entries = state->changes.n_entries,
                .registrations = state->changes.registrations,
                .n_registrations = state->changes.n_registrations,
                .replies = state->changes.replies,
                .n_replies = state->changes.n_replies,
                .executions = effects->executions,
                .n_executions = effects->n_executions,
                .forgotten = state->forgotten,
                .n_forgotten = state->n_forgotten,
                .forgotten_up_to = stats.forgotten_reply,
                .acknowledged = state->acknowledged,
        };
        ret_change_set->notifications =
                notification_queue_staged(&state->notifications, &ret_change_set->n_notifications);
        return 0;
}

void state_commit(struct state *state, const struct change_set *change_set) {
        notification_queue_commit(&state->notifications);
        if (!change_set)
                return;

        state->header = change_set->header;
        state->acknowledged_stored = change_set->acknowledged;
        state->n_forgotten = 0;
}

int state_undo(struct state *state, const struct effects *effects) {
        notification_queue_roll_back(&state->notifications);
        return engine_undo(state->engine, effects);
}

void state_acknowledge(struct state *state, uint64_t sequence) {
        notification_queue_remove(&state->notifications, sequence);
        if (sequence > state->acknowledged)
                state->acknowledged = sequence;
}

bool state_needs_commit(const struct state *state, struct now now) {
        return state->acknowledged > state->acknowledged_stored ||
               timescale_was_stepped(timescale_shift(state->timescale, now), state->header.shift_ms);
}
