/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"

#include <errno.h>

/*
 * Put a new entry into the keyspace. *ret_before is the replaced entry or NULL; the caller takes
 * over its reference.
 */
static int restore_put(struct engine *engine, const struct entry_fields *fields, struct entry **ret_entry,
                       struct entry **ret_before) {
        uint64_t hash = keyspace_hash(&engine->keyspace, fields->key);
        struct entry *before = keyspace_find(&engine->keyspace, hash, fields->key);
        struct entry *entry;
        int r;

        r = entry_new(&entry, fields->key, fields->value, fields->version, fields->fence);
        if (r < 0)
                return r;
        entry->is_persistent = true;
        r = keyspace_put(&engine->keyspace, hash, entry, fields->deadline_ns, before);
        if (r < 0) {
                entry_unref(entry);
                return r;
        }

        *ret_entry = entry;
        *ret_before = before;
        return 0;
}

int engine_put_entry(struct engine *engine, const struct entry_fields *fields) {
        struct entry *entry, *before;
        int r;

        r = restore_put(engine, fields, &entry, &before);
        if (r == 0)
                entry_unref(before);
        return r;
}

void engine_remove_entry(struct engine *engine, struct slice key) {
        struct entry *entry = keyspace_find(&engine->keyspace, keyspace_hash(&engine->keyspace, key), key);

        if (entry)
                keyspace_remove(&engine->keyspace, entry);
        entry_unref(entry);
}

int engine_import_entry(struct engine *engine, const struct entry_fields *fields, struct effects *effects) {
        struct registration *watchers = registrations_of_key(
                &engine->registrations, keyspace_hash(&engine->keyspace, fields->key), fields->key);
        struct row row = { .type = ROW_ENTRY,
                           .entry = { .before_deadline_ns = DEADLINE_NEVER,
                                      .after_deadline_ns = fields->deadline_ns } };
        int r;

        r = effects_reserve_change(effects, watchers);
        if (r == 0)
                r = restore_put(engine, fields, &row.entry.after, &row.entry.before);
        if (r < 0)
                return r;

        entry_ref(row.entry.after);
        effects_change(effects, row, watchers, fields->version);
        return 0;
}

int engine_put_reply(struct engine *engine, uint64_t number, const struct digest *digest,
                     struct result result, int64_t deadline_ns) {
        return dedup_restore(&engine->dedup, number, digest, result, deadline_ns);
}

int engine_put_execution(struct engine *engine, const struct executed_request *execution) {
        return executions_put(&engine->executions, execution);
}

void engine_forget_reply(struct engine *engine, uint64_t number) {
        dedup_forget_number(&engine->dedup, number);
}

void engine_forget_replies_up_to(struct engine *engine, uint64_t number) {
        dedup_forget_up_to(&engine->dedup, number);
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
        const struct registration *first;

        engine_remove_registration(engine, client, key);
        first = registrations_of_client(&engine->registrations, client);
        if (first && first->connection != connection)
                engine->has_former_connections = true;
        return registrations_add(&engine->registrations,
                                 registrations_names(&engine->registrations, client, key), user, connection)
                       ? 0
                       : -ENOMEM;
}
