/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/internal.h"
#include "engine/revocation.h"

static int undo_entry(struct engine *engine, const struct change *change) {
        struct entry *before = change->entry.before, *after = change->entry.after;
        int r;

        if (after) {
                keyspace_remove(&engine->keyspace, after);
                entry_unref(after); /* the keyspace's reference; the change has its own */
        }
        if (before) {
                r = keyspace_put(&engine->keyspace, keyspace_hash(&engine->keyspace, entry_key(before)),
                                 entry_ref(before), change->entry.before_deadline_ns, NULL);
                if (r < 0) {
                        entry_unref(before);
                        return r;
                }
        }
        return 0;
}

/* The registration has ended, and remains to be removed from the storage. */
static int put_ended(struct engine *engine, const struct registration *registration) {
        struct registrations *registrations = &engine->registrations;

        return registrations_add_ended(
                registrations,
                registrations_names(registrations, registration->client_id, registration->key_name));
}

/* A later change may have ended it, and an undo of that change has made another object. */
static int undo_addition(struct engine *engine, const struct registration *registration) {
        struct registration *present =
                engine_find_registration(engine, registration->client_id, registration->key_name);

        if (present) /* absent if its client has disconnected: ticks remove the registration */
                registrations_remove(&engine->registrations, present);
        return registration->replaces_ended ? put_ended(engine, registration) : 0;
}

static int undo_registration(struct engine *engine, const struct change *change) {
        const struct registration *registration = change->registration.registration;

        if (change->registration.is_added)
                return undo_addition(engine, registration);
        if (!change->registration.is_stopped)
                return put_ended(engine, registration);

        engine->has_restored_registrations = true;
        revocation_repeat_unless_granted(engine, registration);
        return engine_put_registration(engine, registration->client_id, registration->user,
                                       registration->key_name, registration->connection);
}

bool engine_has_restored_registrations(const struct engine *engine) {
        return engine->has_restored_registrations;
}

int engine_undo(struct engine *engine, const struct effects *effects) {
        int r = 0;

        if (effects->n_lost > 0)
                engine_restore_lost_keys(engine);
        for (size_t i = effects->n_changes; i-- > 0 && r == 0;) {
                const struct change *change = &effects->changes[i];

                switch (change->type) {
                case CHANGE_ENTRY:
                        r = undo_entry(engine, change);
                        break;
                case CHANGE_REGISTRATION:
                        r = undo_registration(engine, change);
                        break;
                case CHANGE_EXECUTION:
                        dedup_undo(&engine->dedup, change);
                        break;
                }
        }
        return r;
}
