/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/commands.h"

#include <errno.h>

/* Make an entry that is stored. Returns 0 or -ENOMEM. */
static int new_stored_entry(struct entry **ret_entry, const struct entry_fields *fields) {
        int r;

        r = entry_new(ret_entry, fields->key, fields->value, fields->version, fields->fence);
        if (r == 0)
                (*ret_entry)->is_persistent = true;
        return r;
}

int engine_put_entry(struct engine *engine, const struct entry_fields *fields) {
        uint64_t hash = keyspace_hash(&engine->keyspace, fields->key);
        struct entry *before = keyspace_find(&engine->keyspace, hash, fields->key), *entry;
        int r;

        r = new_stored_entry(&entry, fields);
        if (r < 0)
                return r;
        r = keyspace_put(&engine->keyspace, hash, entry, fields->deadline_ns, before);
        entry_unref(r < 0 ? entry : before);
        return r;
}

void engine_remove_entry(struct engine *engine, struct slice key) {
        struct entry *entry = keyspace_find(&engine->keyspace, keyspace_hash(&engine->keyspace, key), key);

        if (entry)
                keyspace_remove(&engine->keyspace, entry);
        entry_unref(entry);
}

int engine_import_entry(struct engine *engine, const struct entry_fields *fields, struct effects *effects) {
        uint64_t hash = keyspace_hash(&engine->keyspace, fields->key);
        struct change change = { .type = CHANGE_ENTRY,
                                 .entry = { .before = keyspace_find(&engine->keyspace, hash, fields->key),
                                            .after_deadline_ns = fields->deadline_ns } };
        int r;

        r = new_stored_entry(&change.entry.after, fields);
        return r < 0 ? r : command_change(engine, hash, change, effects);
}

int engine_put_reply(struct engine *engine, uint64_t number, const struct digest *digest,
                     struct result result, int64_t deadline_ns) {
        return dedup_restore(&engine->dedup, number, digest, result, deadline_ns);
}

void engine_put_execution(struct engine *engine, const struct executed_request *execution) {
        engine->dedup.executions[executions_place(execution->number)] = *execution;
}

void engine_forget_executions(struct engine *engine) {
        memset(engine->dedup.executions, 0, sizeof(engine->dedup.executions));
}

void engine_set_clock(struct engine *engine, struct version clock) {
        engine->clock.last = clock;
}

void engine_remove_registration(struct engine *engine, struct slice client, struct slice key) {
        struct registration *registration = engine_find_registration(engine, client, key);

        if (registration)
                registrations_remove(&engine->registrations, registration);
}

int engine_put_registration(struct engine *engine, struct slice client, struct slice user, struct slice key,
                            uint64_t connection) {
        engine_remove_registration(engine, client, key);
        return registrations_add(&engine->registrations,
                                 registrations_names(&engine->registrations, client, key), user, connection)
                       ? 0
                       : -ENOMEM;
}
