/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "state/change_set.h"
#include "state/notification_queue.h"

/*
 * All that must survive: the engine, the header and the pending notifications. Not thread-safe.
 *
 * The state that executes requests:
 *
 *     engine_request()             repeatedly, as engine_step(): a batch with its effects
 *     state_stage()                its notifications
 *     state_make_change_set()      if the batch is stored: for storage_commit()
 *     state_commit()               afterwards; after an error call state_undo() instead
 *
 * Loading: state_new() with the stored header, then state_put_row() for each row of the storage.
 */
struct state {
        struct engine *engine; /* owned; the caller may execute steps */
        /*
         * Of the last change set. The caller may change node_id while n_commits is 0: the next
         * change set stores it.
         */
        struct state_header header;
        uint64_t served_broker_run; /* the header of the next change set has it */
        struct timescale timescale;
        struct notification_queue notifications;
        uint64_t acknowledged;        /* the notifications up to it are acknowledged, and removed */
        uint64_t acknowledged_stored; /* `acknowledged` of the last change set */
        /* Replies that are forgotten before their time, for the next change set that is committed. */
        uint64_t *forgotten; /* their numbers */
        size_t n_forgotten, forgotten_capacity;
        struct row_list rows; /* of the last change set */
};

/*
 * Create a state without content. The secrets of the engine are those of the header. The node id is that of
 * config; if config has none, that of the header; if the header has none, NODE_ID_DEFAULT. Versions
 * contain the node id, so it cannot change after the first commit. The caller owns *ret_state.
 * Returns 0, -ENOMEM, or -EBADMSG if config and the header have different node ids.
 */
int state_new(struct state **ret_state, const struct engine_config *config,
              const struct state_header *header, struct now now);

/* Accepts NULL, returns NULL. */
struct state *state_free(struct state *state);

/*
 * Put a stored row into the state, replacing a row of the same key. It may not be a removed one, and
 * nothing may be staged. now: to convert its times. Returns 0, -ENOMEM, or -EBADMSG if the numbers of
 * replies or notifications do not ascend. After an error free the state.
 */
int state_put_row(struct state *state, const struct row *row, struct now now);

/*
 * The broker with the plugin of this run is served from now on. If another run was served before, all
 * executions are forgotten: their numbers are those of the other run. Returns true if the run is not
 * stored yet: the next change set stores it. No execution may be uncommitted.
 */
bool state_serve_run(struct state *state, uint64_t broker_run);

/*
 * The batch has ended: stage one notification for each watched change of the effects. Nothing may be
 * staged. Returns 0, or -ENOMEM with nothing staged.
 */
int state_stage(struct state *state, const struct effects *effects);

/*
 * Make the change set of the effects and the staged notifications. Returns 0, or -ENOMEM: then call
 * state_undo().
 *
 * The change set borrows from the effects and the state: change neither until state_commit() or
 * state_undo(), except by state_acknowledge() up to a sequence that was pending before.
 */
int state_make_change_set(struct state *state, const struct effects *effects, struct now now,
                          struct change_set *ret_change_set);

/* The change set is stored; NULL: nothing had to be stored. The staged notifications become pending. */
void state_commit(struct state *state, const struct change_set *change_set);

/*
 * The change set is not stored, or was not made: drop the staged notifications, then engine_undo().
 * The clock is not set back, and forgotten replies stay forgotten: the next change set has those
 * that state_make_change_set() has taken; the others are stored until their time.
 * Returns 0 or -ENOMEM: then the state is inconsistent, and the process must end.
 */
int state_undo(struct state *state, const struct effects *effects);

/*
 * The notifications up to this sequence are acknowledged: remove them. If the sequence is above all
 * sequences so far, later notifications get higher ones; then nothing may be staged.
 */
void state_acknowledge(struct state *state, uint64_t sequence);

/*
 * Return whether a commit is necessary although no batch has changed anything: the wall clock was
 * stepped, so the stored times would be wrong after a restart; or acknowledged notifications are still
 * stored. Call about once a second.
 */
bool state_needs_commit(const struct state *state, struct now now);
