/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/revocation.h"

#include "engine/disconnect.h"

/* Return whether the policy grants the registration. */
static bool is_granted(const struct engine *engine, const struct registration *registration) {
        const struct policy *policy = engine->config.policy;
        struct request_origin origin = registration_origin(registration);
        uint64_t budget = POLICY_STEPS_MAX;

        return !policy || policy_decide(policy, &origin, ACCESS_READ, registration->key_name, &budget);
}

/* Check all registrations from now on. */
static void restart_revocation(struct engine *engine) {
        engine->is_revoking = true;
        engine->registrations.check = (struct registration_cursor){ 0 };
}

void revocation_begin(struct engine *engine, struct effects *effects) {
        size_t n_changes_left = ENGINE_STEP_CHANGES_MAX;

        restart_revocation(engine);
        revocation_continue(engine, &n_changes_left, effects);
}

void revocation_continue(struct engine *engine, size_t *n_changes_left, struct effects *effects) {
        for (; engine->is_revoking && *n_changes_left > 0; (*n_changes_left)--) {
                struct registration *registration =
                        registrations_each(&engine->registrations, &engine->registrations.check);

                if (!registration)
                        engine->is_revoking = false;
                else if (!is_granted(engine, registration))
                        disconnect_end_registration(engine, registration, effects);
        }
}

bool revocation_lets_notify(const struct engine *engine, const struct registration *registration) {
        return !engine->is_revoking || is_granted(engine, registration);
}

void revocation_repeat_unless_granted(struct engine *engine, const struct registration *registration) {
        if (!is_granted(engine, registration))
                restart_revocation(engine);
}
