/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GETs of existing keys under policies with more and more rules, of which the last grants access.
 * The speed of the machine varies more than the policies differ, so a round consists of many short
 * turns. Each turn prints one line per policy.
 */

#include <stdio.h>

#include "base/array.h"
#include "bench/bare_store.h"
#include "bench/bench_engine.h"
#include "bench/fail.h"
#include "bench/keys.h"
#include "bench/stopwatch.h"
#include "policy/policy_build.h"

static const struct kind {
        const char *name;
        unsigned int n_rules;
        const char *pattern; /* of all rules but the last; %u: number of the rule */
} kinds[] = {
        { "no_policy", 0, NULL },
        { "policy_100", 100, "bench-%u/*" },
        { "policy_1000", 1000, "bench-%u/*" },
        { "policy_100_wildcards", 100, "*/bench-%u" },
        { "policy_1000_wildcards", 1000, "*/bench-%u" },
};

#define N_KINDS ARRAY_LENGTH(kinds)
#define N_TURNS 5 /* in a round: each key once, on average */

static void add_rule(struct policy *policy, const char *pattern) {
        bool is_done = policy_add_rule(policy, slice_from_string(pattern)) == POLICY_DONE;

        policy_set_access(policy, ACCESS_READWRITE);
        is_done = is_done &&
                  policy_add_principal(policy, POLICY_ANYONE, (struct slice){ NULL, 0 }) == POLICY_DONE &&
                  policy_add_keys(policy, POLICY_PATTERN, slice_from_string(pattern), 1) == POLICY_DONE;
        if (!is_done)
                fail("cannot add a rule");
}

static struct policy *new_policy(const struct kind *kind) {
        struct policy *policy;
        char pattern[32];

        if (kind->n_rules == 0)
                return NULL;
        if (policy_new(&policy) != POLICY_DONE)
                fail("out of memory");
        for (unsigned int i = 1; i < kind->n_rules; i++) {
                snprintf(pattern, sizeof(pattern), kind->pattern, i);
                add_rule(policy, pattern);
        }
        add_rule(policy, "*");
        if (policy_compile(policy, true) != POLICY_DONE)
                fail("cannot create a policy");
        return policy;
}

static double rate(struct bare_store *store, struct key_sequence *keys, size_t n_gets) {
        int64_t begin_ns = stopwatch_cpu_ns();

        for (size_t i = 0; i < n_gets; i++)
                bare_store_get(store, key_sequence_next(keys));
        bare_store_flush(store);
        return (double)n_gets * NS_PER_S / (double)(stopwatch_cpu_ns() - begin_ns);
}

void engine_policy(uint64_t n_keys, uint64_t n_rounds) {
        struct policy *policies[N_KINDS];
        struct key_sequence keys;
        struct bare_store store;

        bare_store_init(&store, BARE_REMEMBERED_BYTES);
        bare_store_fill(&store, n_keys);
        key_sequence_init(&keys, KEYS_UNIFORM, n_keys, n_keys, 1);
        for (size_t i = 0; i < N_KINDS; i++)
                policies[i] = new_policy(&kinds[i]);
        rate(&store, &keys, n_keys); /* not measured: arrays and caches fill */

        for (uint64_t turn = 0; turn < n_rounds * N_TURNS; turn++)
                for (size_t k = 0; k < N_KINDS; k++) {
                        /* rotate the order, so that each policy runs first equally often */
                        size_t i = (turn + k) % N_KINDS;

                        engine_set_policy(store.engine, policies[i]);
                        printf("get_%s_per_s %.0f\n", kinds[i].name, rate(&store, &keys, n_keys / N_TURNS));
                }

        for (size_t i = 0; i < N_KINDS; i++)
                policy_free(policies[i]);
        key_sequence_deinit(&keys);
        bare_store_deinit(&store);
}
