/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing is executed while the batch is not open, so a policy may wait for that. Registrations end once the broker is
 * served, as it is told of connections that have none left; until then nobody is notified either.
 */

#include "pipeline/internal.h"

void daemon_apply_policy(struct daemon *daemon, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (daemon->is_policy_due) {
                policy_free(daemon->policy);
                daemon->policy = daemon->next_policy;
                daemon->next_policy = NULL;
                daemon->is_policy_due = false;
                daemon->is_policy_new = true;
                engine_set_policy(daemon->engine, daemon->policy);
        }
        if (daemon->is_policy_new && daemon->side != BROKER_SIDE_UNKNOWN) {
                daemon->is_policy_new = false;
                daemon_step(daemon, &changed, now);
        }
}

void daemon_set_policy(struct daemon *daemon, struct policy *policy, struct now now) {
        if (!policy && !daemon->policy && !daemon->is_policy_due)
                return;

        policy_free(daemon->next_policy);
        daemon->next_policy = policy;
        daemon->is_policy_due = true;
        if (!daemon_is_open(daemon))
                return;

        daemon_apply_policy(daemon, now);
        daemon_flush(daemon, now);
}
