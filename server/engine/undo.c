/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "base/cleanup.h"
#include "engine/internal.h"

static int undo_entry(struct engine *engine, const struct row *row) {
        struct entry *before = row->entry.before, *after = row->entry.after;
        int r;

        if (after) {
                store_remove(&engine->store, after);
                entry_unref(after); /* the store's reference; the row has its own */
        }
        if (before) {
                r = store_put(&engine->store, store_hash(&engine->store, entry_key(before)),
                              entry_ref(before), row->entry.before_deadline_ns, NULL);
                if (r < 0) {
                        entry_unref(before);
                        return r;
                }
        }
        return 0;
}

/* Find the registration by name: a registration that was undone before is a new object, not the row's. */
static int undo_registration(struct engine *engine, const struct row *row) {
        const struct registration *registration = row->registration.registration;
        CLEANUP(buf_deinit) struct buf client = { 0 }, key = { 0 };
        struct registration *present;

        if (row->registration.is_final)
                return 0;

        registration_names(registration, &client, &key);
        if (buf_failed(&client) || buf_failed(&key))
                return -ENOMEM;
        if (!row->registration.is_added)
                return watch_add_of_user(&engine->watch, buf_slice(&client), registration->user,
                                         buf_slice(&key), registration->connection);

        present = watch_find(&engine->watch, buf_slice(&client), buf_slice(&key));
        if (present) /* absent if its connection ended meanwhile */
                watch_remove(&engine->watch, present);
        return 0;
}

static void undo_answer(struct engine *engine, const struct row *row) {
        struct dedup_record *record = dedup_find(&engine->dedup, &row->answer.digest);

        if (record)
                dedup_forget(&engine->dedup, record);
}

int engine_undo(struct engine *engine, const struct effects *effects) {
        int r = 0;

        for (size_t i = effects->n_rows; i-- > 0 && r == 0;) {
                const struct row *row = &effects->rows[i];

                switch (row->type) {
                case ROW_ENTRY:
                        r = undo_entry(engine, row);
                        break;
                case ROW_REGISTRATION:
                        r = undo_registration(engine, row);
                        break;
                case ROW_ANSWER:
                        undo_answer(engine, row);
                        break;
                }
        }
        return r;
}

/* Put the entry. *ret_before is the replaced entry or NULL; the caller takes over its reference. */
static int put(struct engine *engine, struct slice key, struct entry *entry, int64_t deadline_ns,
               struct entry **ret_before) {
        uint64_t hash = store_hash(&engine->store, key);
        struct entry *before = store_find(&engine->store, hash, key);
        int r;

        entry->is_persistent = true;
        r = store_put(&engine->store, hash, entry, deadline_ns, before);
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
                           .entry = { .before_deadline_ns = STORE_NEVER,
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

int engine_restore_answer(struct engine *engine, uint32_t slot, const struct digest *digest,
                          struct remembered_answer answer, int64_t deadline_ns) {
        return dedup_restore(&engine->dedup, slot, digest, answer, deadline_ns);
}

void engine_restore_clock(struct engine *engine, struct version clock, uint64_t n_disconnects) {
        engine->clock.last = clock;
        engine->n_disconnects = n_disconnects;
        engine->unlisted_at = n_disconnects; /* not stored; its former value was not greater */
}

int engine_restore_registration(struct engine *engine, struct slice client, struct slice user,
                                struct slice key, uint64_t connection) {
        const struct registration *first = watch_of_client(&engine->watch, client);

        if (first && first->connection != connection)
                engine->has_former_connections = true;
        return watch_add_of_user(&engine->watch, client, user, key, connection);
}
