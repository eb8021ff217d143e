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
        state->served_broker_run = header->served_broker_run;
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
        row_list_deinit(&state->rows);
        engine_free(state->engine);
        free(state->forgotten);
        free(state);
        return NULL;
}

/* 1. Loading */

static int put_stored_entry(struct state *state, const struct entry_row *entry) {
        struct entry_fields fields = { .key = entry->key,
                                       .value = entry->value,
                                       .version = entry->version,
                                       .deadline_ns = DEADLINE_NEVER,
                                       .fence = entry->has_fence ? &entry->fence : NULL };

        if (entry->expires_at_ms != EXPIRES_NEVER)
                fields.deadline_ns = timescale_to_deadline(state->timescale, entry->expires_at_ms);
        return engine_put_entry(state->engine, &fields);
}

static int put_stored_reply(struct state *state, const struct reply_row *reply, struct now now) {
        int64_t deadline_ns = timescale_to_deadline(state->timescale, reply->forget_at_ms);

        if (deadline_ns < 0)
                deadline_ns = 0;
        if (deadline_ns > now.mono_ns + REMEMBERED_MAX_NS)
                deadline_ns = now.mono_ns + REMEMBERED_MAX_NS;
        return engine_put_reply(state->engine, reply->number, &reply->digest, reply->result, deadline_ns);
}

int state_put_row(struct state *state, const struct row *row, struct now now) {
        const struct registration_row *registration = &row->registration;

        ASSERT(!row->is_removed);
        switch (row->type) {
        case ROW_ENTRY:
                return put_stored_entry(state, &row->entry);
        case ROW_REGISTRATION:
                return engine_put_registration(state->engine, registration->client, registration->user,
                                               registration->key, registration->connection);
        case ROW_REPLY:
                return put_stored_reply(state, &row->reply, now);
        case ROW_EXECUTION:
                engine_put_execution(state->engine, &row->execution);
                return 0;
        case ROW_NOTIFICATION:
                return notification_queue_add(&state->notifications, &row->notification);
        case N_ROW_TYPES:
                break;
        }
        ASSERT(!"a type of a row");
        return 0;
}

/* 2. Committing */

static bool is_run_stored(const struct state *state) {
        return state->header.served_broker_run == state->served_broker_run;
}

bool state_serve_run(struct state *state, uint64_t broker_run) {
        if (state->served_broker_run != broker_run)
                engine_forget_executions(state->engine);
        state->served_broker_run = broker_run;
        return !is_run_stored(state);
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
        header.served_broker_run = state->served_broker_run;
        header.clock = stats->clock;
        header.keys_may_be_lost = engine_may_lose_keys(state->engine);
        header.notification_sequence = state->notifications.last_sequence;
        header.reading_ms = timescale_read(state->timescale, now);
        header.shift_ms = timescale_shift(state->timescale, now);
        return header;
}

int state_stage(struct state *state, const struct effects *effects) {
        return notification_queue_stage(&state->notifications, effects);
}

int state_make_change_set(struct state *state, const struct effects *effects, struct now now,
                          struct change_set *ret_change_set) {
        struct engine_stats stats = engine_stats(state->engine);
        struct row_list *list = &state->rows;
        const struct pending_notification *staged;
        size_t n_staged;
        int r;

        r = gather_forgotten(state, effects);
        if (r < 0)
                return r;

        staged = notification_queue_staged(&state->notifications, &n_staged);
        r = row_list_fill(list, effects, state->engine, state->timescale, state->n_forgotten + n_staged);
        if (r < 0)
                return r;

        for (size_t i = 0; i < state->n_forgotten; i++)
                row_list_add(list, (struct row){ .type = ROW_REPLY,
                                                 .is_removed = true,
                                                 .reply = { .number = state->forgotten[i] } });
        for (size_t i = 0; i < n_staged; i++)
                row_list_add(list, (struct row){ .type = ROW_NOTIFICATION, .notification = staged[i] });
        *ret_change_set = (struct change_set){
                .header = next_header(state, &stats, now),
                .rows = list->rows,
                .n_rows = list->n_rows,
                .forgets_executions = !is_run_stored(state),
                .forgotten_up_to = stats.forgotten_reply,
                .acknowledged = state->acknowledged,
        };
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
