/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/effects.h"
#include "engine/engine.h"
#include "state/header.h"
#include "state/timescale.h"

/*
 * A row is what is stored of one entry, registration, remembered reply, execution or pending
 * notification. A change set is one commit: the complete header, and the rows that the commit puts or
 * removes. So a storage needs only the change set. Example: a batch has a SET and a DEL of the stored
 * key "a", and a SET of the key "b". The engine has made three changes of entries (engine/change.h). The
 * change set has two rows for them: the entry of "a", which is removed, and the entry of "b".
 *
 * A change set has at most one row of a key, and one of a registration. Keys that are not persistent are
 * absent. Times are in milliseconds by the timescale (state/timescale.h).
 *
 * All slices and arrays are borrowed. The maker says for how long; state_put_row() and
 * storage_commit() use them only during the call.
 */

#define EXPIRES_NEVER INT64_MAX

struct entry_row {
        struct slice key, value;
        struct version version;
        int64_t expires_at_ms; /* EXPIRES_NEVER: not at all */
        bool has_fence;
        struct hlc fence; /* fencing token */
};

struct registration_row {
        struct slice client, key;
        uint64_t connection; /* over which it was made; 0: unknown */
        struct slice user;   /* empty: none */
};

/* A reply that the store remembers. Those that are added have ascending numbers. */
struct reply_row {
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

enum row_type {
        ROW_ENTRY,
        ROW_REGISTRATION,
        ROW_REPLY,
        ROW_EXECUTION, /* takes the place of another one */
        ROW_NOTIFICATION,
        N_ROW_TYPES,
};

struct row {
        enum row_type type;

        /*
         * Remove an entry, a registration or a reply, which may be absent. Only its key, its client and
         * key, or its number is set.
         */
        bool is_removed;

        union {
                struct entry_row entry;
                struct registration_row registration;
                struct reply_row reply;
                struct executed_request execution;
                struct pending_notification notification;
        };
};

struct change_set {
        struct state_header header;
        const struct row *rows; /* in their order */
        size_t n_rows;
        bool forgets_executions;  /* those before this change set: another broker run is served */
        uint64_t forgotten_up_to; /* all replies up to this number are forgotten */
        uint64_t acknowledged;    /* the notifications up to this sequence are pending no more */
};

/* Owns the rows of a change set, and their memory for the next one. All zeros is an empty list. */
struct row_list {
        struct row *rows;
        size_t n_rows, capacity;
        struct coalesced_change *coalesced;
        size_t coalesced_capacity;
};

void row_list_deinit(struct row_list *list);

/*
 * Replace the content of the list by the rows of the changes in the effects: of entries and registrations,
 * the last change of each; then of executions. They borrow from the effects. engine: has made
 * the changes. There is room for n_more rows afterwards. Returns 0, or -ENOMEM; then the content is
 * undefined.
 */
int row_list_fill(struct row_list *list, const struct effects *effects, const struct engine *engine,
                  struct timescale timescale, size_t n_more);

/* Add a row. There is room. */
void row_list_add(struct row_list *list, struct row row);

/* The row of this entry. Borrows from the entry. */
struct row entry_row_of(const struct entry *entry, int64_t deadline_ns, struct timescale timescale);

/* The row of this registration. Borrows from the registration. */
struct row registration_row_of(const struct registration *registration);
