/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/entry.h"
#include "engine/outcome.h"
#include "engine/row.h"
#include "engine/scan.h"
#include "engine/watch.h"

/*
 * The effects of the steps of one batch: rows for storage; one reply per request, in the order of the requests; and
 * notifications, in the order of the changes. Effects hold references: entries and registrations in them stay valid until
 * effects_reset().
 */

struct reply {
        enum outcome outcome;
        bool has_version;
        bool is_insertion; /* SET of a key that did not exist, with any outcome */
        bool is_repeated;  /* a remembered reply: the request was executed before */
        struct version version;
        struct entry *entry;    /* OUTCOME_VALUE */
        struct scan_page *page; /* OUTCOME_PAGE */
};

/* A change of a key that has registrations. */
struct key_change {
        struct version version;
        struct entry *entry; /* the new entry; NULL: the key was deleted or has expired */
};

struct notification {
        struct registration *registration;
        size_t change; /* index into changes */
};

/*
 * An instruction to the plugin for one connection. Track it: it has its first registration. Untrack it: it has no
 * registration any more. Disconnect it: its client must register again.
 */
struct track_change {
        uint64_t connection;
        bool is_tracked;
        bool is_disconnected;
};

struct effects {
        struct row *rows;
        size_t n_rows, rows_capacity;
        size_t n_stopped; /* rows of registrations that ended by KEYNOTIFY STOP */
        struct track_change *track_changes;
        size_t n_track_changes, track_changes_capacity;
        struct reply *replies;
        size_t n_replies, replies_capacity;
        struct key_change *changes;
        size_t n_changes, changes_capacity;
        struct notification *notifications;
        size_t n_notifications, notifications_capacity;
};

/* Release all references; keep the arrays for the next batch. */
void effects_reset(struct effects *effects);
void effects_deinit(struct effects *effects);

/* Returns 0 or -ENOMEM. After 0 the next effects_reply() cannot fail. */
int effects_reserve_reply(struct effects *effects);

/* Append a reply of zeros. Call effects_reserve_reply() before. */
struct reply *effects_reply(struct effects *effects);

/* Remove the last reply and return it. The caller owns it: reply_deinit(). */
struct reply effects_take_reply(struct effects *effects);

/* Release what the reply refers to. The reply is all zeros afterwards. */
void reply_deinit(struct reply *reply);

/*
 * Make room to notify all registrations of a key. watchers: the first, as from watch_of_key(). Returns 0 or -ENOMEM. After
 * 0, the next effects_notify() for them cannot fail.
 */
int effects_reserve_notify(struct effects *effects, const struct registration *watchers);

/* Add a notification for each registration of the key. entry: the new entry; NULL: the key was deleted or has expired. Takes
 * a reference to the entry if there is a registration. */
void effects_notify(struct effects *effects, struct registration *watchers, struct entry *entry,
                    struct version version);

/* Returns 0 or -ENOMEM. After 0 the next effects_track() cannot fail. */
int effects_reserve_track(struct effects *effects);

/* Add a track or untrack. Ignores connection 0, which means unknown. Call effects_reserve_track() before. */
void effects_track(struct effects *effects, uint64_t connection, bool is_tracked);

/* Add a disconnect. Ignores connection 0. Call effects_reserve_track() before. */
void effects_disconnect(struct effects *effects, uint64_t connection);

/* Returns 0 or -ENOMEM. After 0 the next effects_row() cannot fail. */
int effects_reserve_row(struct effects *effects);

/* Append a row. Takes over the row's references. */
void effects_row(struct effects *effects, struct row row);

/*
 * Convert the effects of a batch whose commit failed; call after engine_undo(). Every reply gets this outcome, and
 * notifications are removed. Disconnects stay, because the registrations of these connections have ended.
 */
void effects_fail(struct effects *effects, enum outcome outcome);
