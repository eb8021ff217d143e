/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing is executed while the batch is not open, so a policy may wait for that. Registrations end once the broker is
 * served, as it is told of connections that have none left; until then nobody is notified either.
 */

#include "pipeline/internal.h"

void pipeline_apply_policy(struct pipeline *pipeline, struct now now) {
        struct event changed = { .type = EVENT_POLICY_CHANGED };

        if (pipeline->is_policy_pending) {
                policy_free(pipeline->policy);
                pipeline->policy = pipeline->next_policy;
                pipeline->next_policy = NULL;
                pipeline->is_policy_pending = false;
                pipeline->is_policy_new = true;
                engine_set_policy(pipeline->engine, pipeline->policy);
        }
        if (pipeline->is_policy_new && pipeline->broker_kind != BROKER_UNKNOWN) {
                pipeline->is_policy_new = false;
                pipeline_step(pipeline, &changed, now);
        }
}

void pipeline_set_policy(struct pipeline *pipeline, struct policy *policy, struct now now) {
        if (!policy && !pipeline->policy && !pipeline->is_policy_pending)
                return;

        policy_free(pipeline->next_policy);
        pipeline->next_policy = policy;
        pipeline->is_policy_pending = true;
        if (!pipeline_is_open(pipeline))
                return;

        pipeline_apply_policy(pipeline, now);
        pipeline_flush(pipeline, now);
}
