/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/change.h"
#include "engine/keyspace.h"
#include "engine/outcome.h"
#include "engine/registrations.h"
#include "engine/scan.h"

/*
 * The effects of the steps of one batch: changes, and notifications in the order of the changes. Effects
 * hold references: entries and registrations in them stay valid until effects_reset().
 */

/* How a request was executed, for metrics. */
enum execution {
        EXECUTION_ORDINARY,
        EXECUTION_INSERTION, /* store_value() for a key that did not exist, even if it failed */
        EXECUTION_REPEATED,  /* executed before: the reply is a remembered one */
};

/* The reply to one request. */
struct reply {
        struct result result;
        enum execution execution;
        bool is_of_earlier_batch; /* EXECUTION_REPEATED: what the request has changed is committed */
        struct entry *entry;      /* PAYLOAD_ENTRY */
        bool has_details;         /* GET: also encode expires_in_ms and the entry's fencing token */
        int64_t expires_in_ms;    /* rounded up; 0: the key does not expire */
        struct scan_page *page;   /* PAYLOAD_PAGE */
};

/* A change of a key that has registrations. */
struct watched_change {
        struct version version;
        struct entry *entry; /* the new entry; NULL: the key was deleted or has expired */
};

struct notification {
        struct registration *registration;
        size_t watched_change; /* index */
};

struct engine;

struct effects {
        struct change *changes;
        size_t n_changes, changes_capacity;
        size_t n_keyed_changes; /* of entries and registrations */
        /* Numbers of the replies that were forgotten before their time. engine_undo() does not revert it. */
        uint64_t *forgotten;
        size_t n_forgotten, forgotten_capacity;
        /* Number of watched changes of keys that a restart may have lost. They are not in `changes`. */
        size_t n_lost;
        struct watched_change *watched_changes;
        size_t n_watched_changes, watched_changes_capacity;
        struct notification *notifications;
        size_t n_notifications, notifications_capacity;

        /*
         * What storing and publishing must copy: of each change its key with the new and the former value,
         * of each notification its topic and value.
         */
        size_t n_bytes;
        size_t n_bytes_before_step;
};

/* Release all references; keep the arrays for the next batch. */
void effects_reset(struct effects *effects);
void effects_deinit(struct effects *effects);

/* Release what the reply refers to. The reply is all zeros afterwards. */
void reply_deinit(struct reply *reply);

/*
 * Make room for the change of a key and the notifications of its registrations. watchers: from
 * registrations_of_key(); may be NULL. Returns 0 or -ENOMEM. After 0, the next effects_add_change() and
 * effects_notify() with these watchers cannot fail.
 */
int effects_reserve_key_change(struct effects *effects, const struct registration *watchers);

/*
 * Add a watched change of the key and a notification for each of its registrations that the policy of the
 * engine grants, after effects_reserve_key_change(). entry: the new entry; NULL: the key does not exist
 * any more. version: of the new entry, or of the former one. Without such registrations, nothing is added.
 */
void effects_notify(struct effects *effects, const struct engine *engine, struct entry *entry,
                    struct registration *watchers, struct version version);

/* Make room for n more changes. Returns 0 or -ENOMEM. */
int effects_reserve_changes(struct effects *effects, size_t n);

/* Append a change, after effects_reserve_changes(). Takes over the change's references. */
void effects_add_change(struct effects *effects, struct change change);

/*
 * Add the number of a reply that is forgotten before its time. If memory is short, the storage keeps
 * the reply until its time.
 */
void effects_forget(struct effects *effects, uint64_t number);
