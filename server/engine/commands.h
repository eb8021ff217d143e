/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/* Execution of requests. Internal to this folder. */

/* A request under execution. */
struct request_step {
        struct engine *engine;
        const struct request *request;
        struct now now;
        struct version version; /* the version assigned to this request */
        struct effects *effects;
        struct reply *reply;
        uint64_t key_hash;                /* of the request's key; 0 for a pattern */
        size_t n_changes_left;            /* for what a tick would do later */
        bool is_authorized;               /* the policy grants the request; false until it is executed */
        struct request_identity identity; /* set by dedup_repeat() */
};

/*
 * Changes of a request itself: the expired entry of its key, the new entry or registration, and the
 * execution.
 */
#define REQUEST_CHANGES 3

/* The function of each verb: execute the request, and set *step->reply. */
extern void (*const command_functions[N_VERBS])(struct request_step *step);

/*
 * Change a key, and notify its watchers. change: of an entry; without before_deadline_ns. `before` is the
 * key's present entry, NULL if the key has none. Takes over the reference to `after`, also on error. hash:
 * of the key. Returns 0 or -ENOMEM; on error nothing has changed.
 */
int command_change(struct engine *engine, uint64_t hash, struct change change, struct effects *effects);

/*
 * Remove an expired entry and notify its watchers. Returns 0 or -ENOMEM; on error nothing has
 * changed.
 */
int command_expire(struct engine *engine, struct entry *entry, struct effects *effects);
