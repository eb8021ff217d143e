/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/entry.h"
#include "engine/outcome.h"
#include "engine/row.h"
#include "engine/scan.h"
#include "engine/watch.h"

/*
 * What the steps of one batch lead to: rows for storage, an answer a request, in the order of the requests, and
 * notifications in the order in which the changes took effect. Values that hold references: nothing in them goes
 * away before effects_reset().
 */

struct reply {
        enum outcome outcome;
        bool has_version;
        bool is_insertion; /* SET of a key that was not there, whatever came of it */
        bool is_repeated;  /* the answer that was remembered of an earlier one */
        struct version version;
        struct entry *entry;    /* OUTCOME_VALUE */
        struct scan_page *page; /* OUTCOME_PAGE */
};

/* A change of a key that somebody watches. */
struct key_change {
        struct version version;
        struct entry *entry; /* as it was set; NULL: it was deleted or has expired */
};

struct notification {
        struct registration *registration;
        size_t change; /* index into changes */
};

/*
 * What the plugin is to do with a connection: to track it, since it has its first registration; to untrack it, since it
 * has no registration any more; or to disconnect it, so that its client registers again.
 */
struct track_change {
        uint64_t connection;
        bool is_tracked;
        bool is_disconnected;
};

struct effects {
        struct row *rows;
        size_t n_rows, rows_capacity;
        size_t n_stopped; /* of these, registrations that were stopped */
        struct track_change *track_changes;
        size_t n_track_changes, track_changes_capacity;
        struct reply *replies;
        size_t n_replies, replies_capacity;
        struct key_change *changes;
        size_t n_changes, changes_capacity;
        struct notification *notifications;
        size_t n_notifications, notifications_capacity;
};

/* Lets go of everything and keeps the arrays for the next batch. */
void effects_reset(struct effects *effects);
void effects_deinit(struct effects *effects);

/* Returns 0 or -ENOMEM. After 0 the next effects_reply() cannot fail. */
int effects_reserve_reply(struct effects *effects);

/* The next reply, all zeros. There must be room: effects_reserve_reply(). */
struct reply *effects_reply(struct effects *effects);

/* Remove the last reply and return it. The caller owns it: reply_deinit(). */
struct reply effects_take_reply(struct effects *effects);

/* Release what the reply refers to. The reply is all zeros afterwards. */
void reply_deinit(struct reply *reply);

/*
 * Makes room to tell everyone who watches the key, `watchers` and those after it. Returns 0 or -ENOMEM. After 0
 * the next effects_notify() for them cannot fail.
 */
int effects_reserve_notify(struct effects *effects, const struct registration *watchers);

/* Tells them. entry: as it was set, one reference is taken where it is needed; NULL: it has gone. */
void effects_notify(struct effects *effects, struct registration *watchers, struct entry *entry,
                    struct version version);

/* Returns 0 or -ENOMEM. After 0 the next effects_track() cannot fail. */
int effects_reserve_track(struct effects *effects);

/* connection 0, one that has no number, is left out. */
void effects_track(struct effects *effects, uint64_t connection, bool is_tracked);

/* Likewise: the connection is to end. There must be room: effects_reserve_track(). */
void effects_disconnect(struct effects *effects, uint64_t connection);

/* Returns 0 or -ENOMEM. After 0 the next effects_row() cannot fail. */
int effects_reserve_row(struct effects *effects);

/* Takes over the references that the row holds. */
void effects_row(struct effects *effects, struct row row);

/*
 * For a batch that could not be stored, after engine_undo(): every answer becomes this outcome, and nobody is
 * told of what has not happened. Connections whose registrations ended are disconnected all the same.
 */
void effects_fail(struct effects *effects, enum outcome outcome);
