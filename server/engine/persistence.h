/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct effects;
struct engine;
struct engine_config;
struct now;

/*
 * The persistence policy (--persist; not the access policy): which keys the storage has. A restart
 * loses all other keys. The store does not know which keys it had, so after the restart it notifies
 * the watchers of each key that does not exist, as if the key had been deleted.
 */

enum persist {
        PERSIST_ALL,
        PERSIST_NONE,
        PERSIST_CUSTOM, /* keys that a rule selects, and keys whose SET requests it */
};

/* Selects the keys that match a glob pattern, or one key. */
struct persist_rule {
        struct slice text;
        bool is_key;
};

/* Return whether a SET of this key is stored. is_requested: the SET requests it. */
bool persistence_stores(const struct engine_config *config, struct slice key, bool is_requested);

/*
 * Internal to this folder: the part of a tick that follows engine_restore_lost_keys(). Check at
 * most *n_changes_left of the watched keys that remain to be checked, and notify the watchers of those
 * that do not exist. Reduces *n_changes_left. Returns 0, or -ENOMEM: the next tick begins again, and
 * notifies some clients twice.
 */
int persistence_notify_lost(struct engine *engine, struct now now, size_t *n_changes_left,
                            struct effects *effects);
