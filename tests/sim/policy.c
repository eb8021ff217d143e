/* SPDX-License-Identifier: Apache-2.0 */

/* Access rules that change while requests are in flight, and their history. */

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "pipeline/internal.h"
#include "policy/policy_build.h"
#include "sim/check.h"
#include "sim/world.h"

/* 1. History */

static struct truth_policy *last_policy(struct truth *truth) {
        return &truth->policies[truth->n_policies - 1];
}

void truth_add_policy(struct truth *truth, const enum access *granted) {
        struct truth_policy policy = { .from_ns = INT64_MAX, .until_ns = INT64_MAX };

        memcpy(policy.granted, granted, sizeof(policy.granted));
        ASSERT(array_reserve((void **)&truth->policies, &truth->policies_capacity, truth->n_policies + 1,
                             sizeof(policy)) == 0);
        truth->policies[truth->n_policies++] = policy;
}

bool truth_was_granted(const struct truth *truth, size_t client, enum verb verb, bool is_granted,
                       int64_t from_ns, int64_t until_ns) {
        for (size_t i = 0; i < truth->n_policies; i++) {
                const struct truth_policy *policy = &truth->policies[i];

                if (policy->from_ns <= until_ns && policy->until_ns >= from_ns &&
                    !!(policy->granted[client] & verbs[verb].access) == is_granted)
                        return true;
        }
        return false;
}

/* 2. Changes */

static struct policy *compile(const struct truth_policy *granted) {
        struct policy *policy;

        ASSERT(policy_new(&policy) == 0);
        for (size_t i = 0; i < N_CLIENTS; i++) {
                struct slice name = slice_from_string(truth_client(i));

                if (!granted->granted[i])
                        continue;
                ASSERT(policy_add_rule(policy, name) == POLICY_DONE);
                policy_set_access(policy, granted->granted[i]);
                ASSERT(policy_add_principal(policy, POLICY_CLIENT, name) == POLICY_DONE);
                ASSERT(policy_add_keys(policy, POLICY_PATTERN, SLICE_LITERAL("*"), 1) == POLICY_DONE);
        }
        ASSERT(policy_compile(policy, true) == POLICY_DONE);
        return policy;
}

void policy_set(struct world *world) {
        /* Until the first policy_change() the pipeline has no policy. */
        if (world->truth.n_policies > 1 && !IS_PLANTED(PLANTED_OLD_POLICY)) {
                pipeline_set_policy(world->pipeline, compile(last_policy(&world->truth)));
                pipeline_advance(world->pipeline, world_store_now(world));
        }
        policy_observe(world);
}

void policy_change(struct world *world) {
        static const enum access choices[] = {
                0, ACCESS_READ, ACCESS_WRITE, ACCESS_READWRITE, ACCESS_READWRITE, ACCESS_READWRITE
        };
        enum access granted[N_CLIENTS];

        for (size_t i = 0; i < N_CLIENTS; i++)
                granted[i] = world->is_healed ? ACCESS_READWRITE : choices[random_below(&world->random, 6)];
        check_trace("policy %d %d %d %d %d", granted[0], granted[1], granted[2], granted[3], granted[4]);
        truth_add_policy(&world->truth, granted);
        if (world->pipeline)
                policy_set(world);
}

void policy_observe(struct world *world) {
        struct truth *truth = &world->truth;
        struct truth_policy *last = last_policy(truth);

        if (!world->pipeline || world->pipeline->has_next_policy || last->from_ns != INT64_MAX)
                return;

        for (size_t i = 0; i + 1 < truth->n_policies; i++)
                if (truth->policies[i].until_ns == INT64_MAX)
                        truth->policies[i].until_ns = world->now.mono_ns;
        last->from_ns = world->now.mono_ns;
        for (size_t i = 0; i < world->n_clients; i++)
                if (!(last->granted[i] & ACCESS_READ)) {
                        memset(world->clients[i].registered_on, 0, sizeof(world->clients[i].registered_on));
                        world->clients[i].denied_ns = world->now.mono_ns;
                }
}
