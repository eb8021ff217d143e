/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"

#include <errno.h>

/* Put the entry into the store. *ret_before is the replaced entry or NULL; the caller takes over its reference. */
static int put(struct engine *engine, struct slice key, struct entry *entry, int64_t deadline_ns,
               struct entry **ret_before) {
        uint64_t hash = keyspace_hash(&engine->keyspace, key);
        struct entry *before = keyspace_find(&engine->keyspace, hash, key);
        int r;

        entry->is_persistent = true;
        r = keyspace_put(&engine->keyspace, hash, entry, deadline_ns, before);
        if (r < 0) {
                entry_unref(entry);
                return r;
        }
        *ret_before = before;
        return 0;
}

int engine_restore_entry(struct engine *engine, struct slice key, struct slice value, struct version version,
                         int64_t deadline_ns, const struct hlc *fence) {
        struct entry *entry, *before;
        int r;

        r = entry_new(&entry, key, value, version, fence);
        if (r == 0)
                r = put(engine, key, entry, deadline_ns, &before);
        if (r == 0)
                entry_unref(before);
        return r;
}

int engine_import_entry(struct engine *engine, struct slice key, struct slice value, struct version version,
                        int64_t deadline_ns, const struct hlc *fence, struct effects *effects) {
        struct row row = { .type = ROW_ENTRY,
                           .entry = { .before_deadline_ns = DEADLINE_NEVER,
                                      .after_deadline_ns = deadline_ns } };
        struct entry *entry;
        int r;

        r = effects_reserve_row(effects);
        if (r == 0)
                r = entry_new(&entry, key, value, version, fence);
        if (r == 0)
                r = put(engine, key, entry, deadline_ns, &row.entry.before);
        if (r < 0)
                return r;

        row.entry.after = entry_ref(entry);
        effects_row(effects, row);
        return 0;
}

int engine_restore_reply(struct engine *engine, uint32_t slot, const struct digest *digest,
                         struct remembered_reply reply, int64_t deadline_ns) {
        return dedup_restore(&engine->dedup, slot, digest, reply, deadline_ns);
}

void engine_restore_clock(struct engine *engine, struct version clock, uint64_t disconnect_epoch) {
        engine->clock.last = clock;
        engine->disconnect_epoch = disconnect_epoch;
        /* Not stored. disconnect_epoch is at least the value before the restart. */
        engine->revocation_epoch = disconnect_epoch;
}

int engine_restore_registration(struct engine *engine, struct slice client, struct slice user,
                                struct slice key, uint64_t connection) {
        const struct registration *first = watch_of_client(&engine->watch, client);

        if (first && first->connection != connection)
                engine->has_former_connections = true;
        return watch_add(&engine->watch, watch_names(&engine->watch, client, key), user, connection)
                       ? 0
                       : -ENOMEM;
}
