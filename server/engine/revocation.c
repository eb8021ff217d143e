/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/revocation.h"

#include "base/cleanup.h"
#include "engine/disconnect.h"

/* Return whether the policy grants the registration. Returns false if out of memory. */
static bool is_granted(const struct engine *engine, const struct registration *registration) {
        const struct policy *policy = engine->config.policy;
        CLEANUP(buf_deinit) struct buf client = { 0 }, key = { 0 };
        uint64_t budget = POLICY_STEPS_MAX;
        struct request_origin origin;

        if (!policy)
                return true;

        registration_names(registration, &client, &key);
        origin = (struct request_origin){ buf_slice(&client), registration->user,
                                          registration->connection != 0 };
        return !buf_failed(&client) && !buf_failed(&key) &&
               policy_decide(policy, &origin, ACCESS_READ, buf_slice(&key), &budget);
}

/* End the registration, unless the policy grants it. Its connection stays open. If the connection has no other registration,
 * the plugin must not track it any more. */
static void end_unless_granted(struct engine *engine, struct registration *registration,
                               struct effects *effects) {
        uint64_t connection = registration->connection;

        if (is_granted(engine, registration))
                return;

        disconnect_end_registration(engine, registration, true, effects);
        engine->revocation_epoch = ++engine->disconnect_epoch;
        if (connection != 0 && !watch_of_connection(&engine->watch, connection) &&
            effects_reserve_track(effects) == 0)
                effects_track(effects, connection, UNTRACK_CONNECTION);
}

/* KEYNOTIFY STOP has ended some registrations in this batch. An undo must not restore a registration that the policy does not
 * grant, so make its end irreversible. */
static void make_stopped_irreversible(const struct engine *engine, struct effects *effects) {
        struct row *row;
        size_t at = 0;

        while ((row = disconnect_next_stopped(effects, &at)))
                if (!is_granted(engine, row->registration.registration))
                        row->registration.is_irreversible = true;
}

void revocation_begin(struct engine *engine, struct effects *effects) {
        engine->is_revoking = true;
        engine->n_shards_checked = 0;
        revocation_continue(engine, effects);
}

/* Check whole shards, because a change of a shard invalidates positions in it. */
void revocation_continue(struct engine *engine, struct effects *effects) {
        struct watch_cursor cursor = { .n_shards_begun = engine->n_shards_checked };
        struct registration *registration;
        size_t n_checked = 0;

        if (!engine->is_revoking)
                return;

        make_stopped_irreversible(engine, effects);
        while (n_checked < ENGINE_REVOKED_MAX && engine->is_revoking) {
                engine->is_revoking = watch_begin_shard(&engine->watch, &cursor);
                for (; (registration = watch_each_of_shard(&cursor)); n_checked++)
                        end_unless_granted(engine, registration, effects);
        }
        engine->n_shards_checked = cursor.n_shards_begun;
}

void revocation_check_key(struct engine *engine, uint64_t hash, struct slice key, struct effects *effects) {
        struct registration *registration = watch_of_key(&engine->watch, hash, key);

        while (registration) {
                struct registration *next = watch_next_of_key(registration);

                end_unless_granted(engine, registration, effects);
                registration = next;
        }
}
