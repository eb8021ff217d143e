/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/time_units.h"
#include "engine/internal.h"
#include "state/state.h"

/*
 * A copy of a state that follows its commits: it becomes equal to the state only if the change sets are
 * complete.
 */

/* The row of a remembered reply. */
static inline struct row follow_reply_row(const struct remembered_reply *reply, struct timescale timescale) {
        int64_t deadline_ns = (int64_t)reply->deadline_s * NS_PER_S;

        return (struct row){ .type = ROW_REPLY,
                             .reply = { .number = reply->number,
                                        .digest = reply->digest,
                                        .result = reply->result,
                                        .forget_at_ms = timescale_from_deadline(timescale, deadline_ns) } };
}

static inline void follow_removal(struct engine *engine, const struct row *row) {
        struct remembered_reply *reply = engine->dedup.oldest;

        if (row->type == ROW_ENTRY)
                engine_remove_entry(engine, row->entry.key);
        else if (row->type == ROW_REGISTRATION)
                engine_remove_registration(engine, row->registration.client, row->registration.key);
        else if (row->type == ROW_REPLY) {
                while (reply && reply->number != row->reply.number)
                        reply = reply->next;
                if (reply)
                        dedup_forget(&engine->dedup, reply);
        }
}

/* Apply a change set of the followed state to the copy. Returns as state_put_row(). */
static inline int follow_commit(struct state *copy, const struct change_set *change_set, struct now now) {
        struct dedup *dedup = &copy->engine->dedup;
        int r = 0;

        state_acknowledge(copy, change_set->acknowledged);
        copy->acknowledged_stored = copy->acknowledged;
        if (change_set->forgets_executions)
                engine_forget_executions(copy->engine);
        for (size_t i = 0; i < change_set->n_rows && r == 0; i++)
                if (change_set->rows[i].is_removed)
                        follow_removal(copy->engine, &change_set->rows[i]);
                else
                        r = state_put_row(copy, &change_set->rows[i], now);
        engine_set_clock(copy->engine, change_set->header.clock);
        copy->header = change_set->header;
        copy->served_broker_run = copy->header.served_broker_run;
        while (dedup->oldest && dedup->oldest->number <= change_set->forgotten_up_to)
                dedup_forget(dedup, dedup->oldest);
        dedup->forgotten_number = change_set->forgotten_up_to;
        return r;
}
