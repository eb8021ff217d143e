/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <criterion/criterion.h>

#include "engine/effects.h"
#include "engine/internal.h"
#include "unit/support/secrets.h"

/* Changes of watched keys, without an engine. The table is initialized with HASH_KEY(1). */

static inline void add_watcher(struct registrations *table, struct slice client, struct slice key,
                               uint64_t connection) {
        cr_assert(registrations_add(table, registrations_names(table, client, key), (struct slice){ 0 },
                                    connection));
}

/* value absent: the key is deleted. */
static inline void change_key(struct effects *effects, struct registrations *table, struct slice key,
                              struct slice value) {
        static const struct engine without_policy;
        struct version version = { 1000, (uint32_t)effects->n_watched_changes };
        struct registration *watchers = registrations_of_key(table, hash_bytes(HASH_KEY(1), key), key);
        struct change change = { .type = CHANGE_ENTRY };

        cr_assert_eq(entry_new(value.data ? &change.entry.after : &change.entry.before, key, value, version,
                               NULL),
                     0);
        cr_assert_eq(effects_reserve_key_change(effects, watchers), 0);
        effects_add_change(effects, change);
        effects_notify(effects, &without_policy, change.entry.after, watchers, version);
}
