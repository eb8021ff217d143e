/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/effects.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

static void release_row(struct row *row) {
        switch (row->type) {
        case ROW_ENTRY:
                entry_unref(row->entry.before);
                entry_unref(row->entry.after);
                break;
        case ROW_REGISTRATION:
                registration_unref(row->registration.registration);
                break;
        case ROW_ANSWER:
                break;
        }
}

static void reset_rows(struct effects *effects) {
        for (size_t i = 0; i < effects->n_rows; i++)
                release_row(&effects->rows[i]);
        effects->n_rows = 0;
        effects->n_stopped = 0;
}

static void reset_notifications(struct effects *effects) {
        for (size_t i = 0; i < effects->n_changes; i++)
                entry_unref(effects->changes[i].entry);
        for (size_t i = 0; i < effects->n_notifications; i++)
                registration_unref(effects->notifications[i].registration);

        effects->n_changes = 0;
        effects->n_notifications = 0;
}

void reply_deinit(struct reply *reply) {
        entry_unref(reply->entry);
        scan_page_free(reply->page);
        *reply = (struct reply){ 0 };
}

void effects_reset(struct effects *effects) {
        reset_rows(effects);
        reset_notifications(effects);
        effects->n_track_changes = 0;
        for (size_t i = 0; i < effects->n_replies; i++)
                reply_deinit(&effects->replies[i]);
        effects->n_replies = 0;
}

/* Remove all track changes except disconnects. */
static void keep_disconnects(struct effects *effects) {
        size_t n_kept = 0;

        for (size_t i = 0; i < effects->n_track_changes; i++)
                if (effects->track_changes[i].is_disconnected)
                        effects->track_changes[n_kept++] = effects->track_changes[i];
        effects->n_track_changes = n_kept;
}

void effects_fail(struct effects *effects, enum outcome outcome) {
        reset_rows(effects);
        reset_notifications(effects);
        keep_disconnects(effects);
        for (size_t i = 0; i < effects->n_replies; i++) {
                reply_deinit(&effects->replies[i]);
                effects->replies[i].outcome = outcome;
        }
}

void effects_deinit(struct effects *effects) {
        effects_reset(effects);
        free(effects->rows);
        free(effects->track_changes);
        free(effects->replies);
        free(effects->changes);
        free(effects->notifications);
        *effects = (struct effects){ 0 };
}

int effects_reserve_reply(struct effects *effects) {
        return array_reserve((void **)&effects->replies, &effects->replies_capacity, effects->n_replies + 1,
                             sizeof(*effects->replies));
}

struct reply *effects_reply(struct effects *effects) {
        struct reply *reply;

        ASSERT(effects->n_replies < effects->replies_capacity);

        reply = &effects->replies[effects->n_replies++];
        *reply = (struct reply){ 0 };
        return reply;
}

struct reply effects_take_reply(struct effects *effects) {
        ASSERT(effects->n_replies > 0);

        return effects->replies[--effects->n_replies];
}

int effects_reserve_notify(struct effects *effects, const struct registration *watchers) {
        size_t n_watchers = 0;
        int r;

        if (!watchers)
                return 0;

        for (; watchers; watchers = watchers->next_of_key)
                n_watchers++;

        r = array_reserve((void **)&effects->changes, &effects->changes_capacity, effects->n_changes + 1,
                          sizeof(*effects->changes));
        if (r < 0)
                return r;
        return array_reserve((void **)&effects->notifications, &effects->notifications_capacity,
                             effects->n_notifications + n_watchers, sizeof(*effects->notifications));
}

void effects_notify(struct effects *effects, struct registration *watchers, struct entry *entry,
                    struct version version) {
        size_t change = effects->n_changes;

        if (!watchers)
                return;

        ASSERT(change < effects->changes_capacity);
        effects->changes[effects->n_changes++] = (struct key_change){
                .version = version,
                .entry = entry ? entry_ref(entry) : NULL,
        };

        for (; watchers; watchers = watchers->next_of_key) {
                ASSERT(effects->n_notifications < effects->notifications_capacity);
                effects->notifications[effects->n_notifications++] = (struct notification){
                        .registration = registration_ref(watchers),
                        .change = change,
                };
        }
}

int effects_reserve_track(struct effects *effects) {
        return array_reserve((void **)&effects->track_changes, &effects->track_changes_capacity,
                             effects->n_track_changes + 1, sizeof(*effects->track_changes));
}

void effects_track(struct effects *effects, uint64_t connection, bool is_tracked) {
        if (connection == 0)
                return;

        ASSERT(effects->n_track_changes < effects->track_changes_capacity);
        effects->track_changes[effects->n_track_changes++] =
                (struct track_change){ .connection = connection, .is_tracked = is_tracked };
}

void effects_disconnect(struct effects *effects, uint64_t connection) {
        if (connection == 0)
                return;

        ASSERT(effects->n_track_changes < effects->track_changes_capacity);
        effects->track_changes[effects->n_track_changes++] =
                (struct track_change){ .connection = connection, .is_disconnected = true };
}

int effects_reserve_row(struct effects *effects) {
        return array_reserve((void **)&effects->rows, &effects->rows_capacity, effects->n_rows + 1,
                             sizeof(*effects->rows));
}

void effects_row(struct effects *effects, struct row row) {
        ASSERT(effects->n_rows < effects->rows_capacity);
        effects->rows[effects->n_rows++] = row;
}
