/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/revocation.h"

#include "engine/disconnect.h"

/* Return whether the policy grants the registration. */
static bool is_granted(const struct engine *engine, const struct registration *registration) {
        const struct policy *policy = engine->config.policy;
        const struct request_origin origin = { registration->client_id, registration->user,
                                               registration->connection != 0 };
        uint64_t budget = POLICY_STEPS_MAX;

        return !policy || policy_decide(policy, &origin, ACCESS_READ, registration->key_name, &budget);
}

/* End the registration, unless the policy grants it. Its connection stays open. */
static void end_unless_granted(struct engine *engine, struct registration *registration,
                               struct effects *effects) {
        if (is_granted(engine, registration))
                registration->policy_number = engine->policy_number;
        else
                disconnect_end_registration(engine, registration, effects);
}

/* Check all registrations from now on. */
static void restart_revocation(struct engine *engine) {
        engine->is_revoking = true;
        engine->policy_number++;
        engine->registrations.check = (struct registration_cursor){ 0 };
}

void revocation_begin(struct engine *engine, struct effects *effects) {
        size_t n_changes_left = ENGINE_STEP_CHANGES_MAX;

        restart_revocation(engine);
        revocation_continue(engine, &n_changes_left, effects);
}

void revocation_continue(struct engine *engine, size_t *n_changes_left, struct effects *effects) {
        if (!engine->is_revoking)
                return;

        for (; engine->is_revoking && *n_changes_left > 0; (*n_changes_left)--) {
                struct registration *registration =
                        registrations_each(&engine->registrations, &engine->registrations.check);

                if (registration)
                        end_unless_granted(engine, registration, effects);
                else
                        engine->is_revoking = false;
        }
}

bool revocation_check_key(struct engine *engine, struct slice key, size_t *n_changes_left,
                          struct effects *effects) {
        struct registration *registration, *next;

        if (!engine->is_revoking)
                return true;

        registration =
                registrations_of_key(&engine->registrations, keyspace_hash(&engine->keyspace, key), key);
        for (; registration; registration = next) {
                next = registration_next_of_key(registration);
                if (registration->policy_number == engine->policy_number)
                        continue;
                if (*n_changes_left == 0)
                        return false;
                end_unless_granted(engine, registration, effects);
                (*n_changes_left)--;
        }
        return true;
}

void revocation_repeat_unless_granted(struct engine *engine, const struct registration *registration) {
        if (!is_granted(engine, registration))
                restart_revocation(engine);
}
