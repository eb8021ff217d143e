/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/dedup.h"
#include "engine/effects.h"
#include "engine/engine.h"
#include "state/header.h"
#include "state/timescale.h"

/*
 * A change set is one commit: the complete header, and what the commit adds, replaces and removes.
 * A change names what it changes, and has everything that is stored of it. So a storage needs only
 * the change set, and state_apply() makes an equal copy of a state from its change sets in order.
 *
 * A change set has at most one change of a key, and one of a registration. Keys that are not
 * persistent are absent. Times are in milliseconds by the timescale (state/timescale.h).
 *
 * All slices and arrays are borrowed. The maker says for how long; state_apply() and
 * storage_commit() use them only during the call.
 */

#define EXPIRES_NEVER INT64_MAX

struct entry_change {
        struct slice key;
        struct slice value; /* data NULL: the key is removed, and the members below are 0 */
        struct version version;
        int64_t expires_at_ms; /* EXPIRES_NEVER: not at all */
        bool has_fence;
        struct hlc fence; /* fencing token */
};

struct registration_change {
        struct slice client, key;
        bool is_removed;     /* it may be absent; the members below are then 0 */
        uint64_t connection; /* over which it was made; 0: unknown */
        struct slice user;   /* empty: none */
};

/* A reply that the store remembers, in ascending order of numbers. */
struct reply_change {
        uint64_t number;
        struct digest digest; /* identifies the request */
        struct result result;
        int64_t forget_at_ms;
};

/* A notification that is pending from now on. */
struct pending_notification {
        uint64_t sequence;       /* 1 to INT64_MAX; the next one is greater by 1 */
        struct version version;  /* of the change of the key */
        struct slice key;        /* never empty */
        struct slice value;      /* data NULL: the key was deleted or has expired */
        struct slice recipients; /* see state/recipients.h */
        struct entry *entry;     /* owned by the queue of a state: has the value; else NULL */
};

struct change_set {
        struct state_header header;
        const struct entry_change *entries;
        size_t n_entries;
        const struct registration_change *registrations;
        size_t n_registrations;
        const struct reply_change *replies; /* added before the forgotten ones are removed */
        size_t n_replies;
        const struct execution_row *executions; /* in their order; `before` is not stored */
        size_t n_executions;
        const struct forgotten_reply *forgotten;
        size_t n_forgotten;
        uint64_t forgotten_up_to; /* all replies up to this number are forgotten */
        const struct pending_notification *notifications;
        size_t n_notifications;
        uint64_t acknowledged; /* the notifications up to this sequence are pending no more */
};

/* Owns the arrays of a change set, for the next one as well. All zeros is an empty buffer. */
struct change_buffer {
        struct coalesced_row *rows;
        size_t rows_capacity;
        struct entry_change *entries;
        size_t n_entries, entries_capacity;
        struct registration_change *registrations;
        size_t n_registrations, registrations_capacity;
        struct reply_change *replies;
        size_t n_replies, replies_capacity;
};

void change_buffer_deinit(struct change_buffer *buffer);

/*
 * Replace the content of the buffer by the changes of the rows: entries, registrations and replies.
 * They borrow from the effects. hash_key: of hash tables. Returns 0 or -ENOMEM; then the content is
 * undefined.
 */
int change_buffer_fill(struct change_buffer *buffer, const struct effects *effects,
                       const struct hash_key *hash_key, struct timescale timescale);

/* The change that sets this entry. Borrows from the entry. */
struct entry_change entry_change_of(const struct entry *entry, int64_t deadline_ns,
                                    struct timescale timescale);

/* The change that adds this registration. Borrows from the registration. */
struct registration_change registration_change_of(const struct registration *registration);

/* The change that adds this reply. */
struct reply_change reply_change_of(const struct reply_row *row, struct timescale timescale);
