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
        struct slice key, value;
        struct version version;
        int64_t expires_at_ms; /* EXPIRES_NEVER: not at all */
        bool has_fence;
        struct hlc fence; /* fencing token */
};

struct registration_change {
        struct slice client, key;
        uint64_t connection; /* over which it was made; 0: unknown */
        struct slice user;   /* empty: none */
};

/* A reply that the store remembers. Those that are added have ascending numbers. */
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

enum change_type {
        CHANGE_ENTRY,
        CHANGE_REGISTRATION,
        CHANGE_REPLY,
        CHANGE_EXECUTION, /* takes the place of another one */
        CHANGE_NOTIFICATION,
        N_CHANGE_TYPES,
};

struct change {
        enum change_type type;

        /*
         * Remove an entry, a registration or a reply, which may be absent. Only its key, its client and
         * key, or its number is set.
         */
        bool is_removed;

        union {
                struct entry_change entry;
                struct registration_change registration;
                struct reply_change reply;
                struct executed_request execution;
                struct pending_notification notification;
        };
};

struct change_set {
        struct state_header header;
        const struct change *changes; /* in their order */
        size_t n_changes;
        bool forgets_executions;  /* those before this change set: another broker run is served */
        uint64_t forgotten_up_to; /* all replies up to this number are forgotten */
        uint64_t acknowledged;    /* the notifications up to this sequence are pending no more */
};

/* Owns the changes of a change set, and their memory for the next one. All zeros is an empty list. */
struct change_list {
        struct change *changes;
        size_t n_changes, capacity;
        struct coalesced_row *rows;
        size_t rows_capacity;
};

void change_list_deinit(struct change_list *list);

/*
 * Replace the content of the list by the changes of the effects: entries and registrations, coalesced,
 * then replies and executions. They borrow from the effects. engine: has executed them. There is room for
 * n_more changes afterwards. Returns 0, or -ENOMEM; then the content is undefined.
 */
int change_list_fill(struct change_list *list, const struct effects *effects, const struct engine *engine,
                     struct timescale timescale, size_t n_more);

/* Add a change. There is room. */
void change_list_add(struct change_list *list, struct change change);

/* The change that sets this entry. Borrows from the entry. */
struct change entry_change_of(const struct entry *entry, int64_t deadline_ns, struct timescale timescale);

/* The change that adds this registration. Borrows from the registration. */
struct change registration_change_of(const struct registration *registration);

/* The change that adds this reply. */
struct change reply_change_of(const struct remembered_reply *reply, struct timescale timescale);
