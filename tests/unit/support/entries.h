/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * Return the key's entry, also if its deadline has passed; NULL if the key has none. Borrowed until
 * the next step.
 */
static inline struct entry *find_entry(const struct engine *engine, struct slice key) {
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;

        do
                entry = keyspace_each(engine_keyspace(engine), &cursor);
        while (entry && !slice_equal(entry_key(entry), key));
        return entry;
}
