/* SPDX-License-Identifier: Apache-2.0 */

#include "policy/policy_build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "policy/internal.h"

int policy_new(struct policy **ret_policy) {
        struct policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return -ENOMEM;
        *ret_policy = policy;
        return POLICY_DONE;
}

struct policy *policy_free(struct policy *policy) {
        if (!policy)
                return NULL;

        for (size_t i = 0; i < policy->n_rules; i++)
                free((void *)policy->rules[i].name.data);
        for (size_t i = 0; i < policy->n_principals; i++)
                free((void *)policy->principals[i].name.data);
        for (size_t i = 0; i < policy->n_keys; i++)
                free((void *)policy->keys[i].text.data);
        free(policy->rules);
        free(policy->principals);
        free(policy->keys);
        free(policy->grantees);
        free(policy->grants);
        free(policy);
        return NULL;
}

static int copy_text(struct slice text, struct slice *ret_copy) {
        uint8_t *data = malloc(text.length ? text.length : 1);

        if (!data)
                return -ENOMEM;
        if (text.length)
                memcpy(data, text.data, text.length);
        *ret_copy = (struct slice){ data, text.length };
        return 0;
}

static struct policy_rule *last_rule(struct policy *policy) {
        ASSERT(policy->n_rules > 0 && !policy->grantees);
        return &policy->rules[policy->n_rules - 1];
}

int policy_add_rule(struct policy *policy, struct slice name) {
        struct policy_rule rule = { .first_principal = (uint32_t)policy->n_principals,
                                    .first_keys = (uint32_t)policy->n_keys };
        int r;

        if (policy->n_rules == POLICY_RULES_MAX)
                return POLICY_TOO_MANY;
        r = array_reserve((void **)&policy->rules, &policy->rules_capacity, policy->n_rules + 1,
                          sizeof(*policy->rules));
        if (r == 0)
                r = copy_text(name, &rule.name);
        if (r < 0)
                return r;

        policy->rules[policy->n_rules++] = rule;
        return POLICY_DONE;
}

void policy_set_access(struct policy *policy, enum access access) {
        last_rule(policy)->access = access;
}

int policy_add_principal(struct policy *policy, enum policy_principal_kind kind, struct slice name) {
        struct policy_principal principal = { .kind = kind };
        int r;

        if (kind != POLICY_ANYONE && name.length == 0)
                return POLICY_EMPTY;
        if (!slice_is_utf8(name))
                return POLICY_NOT_UTF8;
        if (policy->n_principals == POLICY_PRINCIPALS_MAX)
                return POLICY_TOO_MANY;
        r = array_reserve((void **)&policy->principals, &policy->principals_capacity,
                          policy->n_principals + 1, sizeof(*policy->principals));
        if (r == 0)
                r = copy_text(kind == POLICY_ANYONE ? (struct slice){ 0 } : name, &principal.name);
        if (r < 0)
                return r;

        policy->principals[policy->n_principals++] = principal;
        last_rule(policy)->n_principals++;
        return POLICY_DONE;
}

int policy_add_keys(struct policy *policy, enum policy_keys_kind kind, struct slice text,
                    unsigned int line) {
        struct policy_keys keys = { .rule = (uint32_t)policy->n_rules - 1, .line = line };
        int r;

        if (policy->n_keys == POLICY_KEYS_MAX)
                return POLICY_TOO_MANY;
        r = array_reserve((void **)&policy->keys, &policy->keys_capacity, policy->n_keys + 1,
                          sizeof(*policy->keys));
        if (r == 0)
                r = copy_text(text, &keys.text);
        if (r < 0)
                return r;

        r = (int)policy_keys_parse(&keys, kind);
        if (r != POLICY_DONE) {
                free((void *)keys.text.data);
                return r;
        }
        policy->keys[policy->n_keys++] = keys;
        last_rule(policy)->n_keys++;
        return POLICY_DONE;
}

/* A grant before compilation. */
struct grant_draft {
        const struct policy_principal *principal;
        const struct policy_keys *keys;
};

static int draft_compare(const void *a, const void *b) {
        const struct grant_draft *one = a, *other = b;
        int order = policy_principal_compare(one->principal, other->principal);

        if (order == 0)
                order = slice_compare(one->keys->prefix, other->keys->prefix);
        /*
         * Descending: find_grant() starts at the end, so it finds the line that is first in the
         * file.
         */
        if (order == 0)
                order = one->keys < other->keys ? 1 : one->keys > other->keys ? -1 : 0;
        return order;
}

static uint64_t count_grants(const struct policy *policy) {
        uint64_t n_grants = 0;

        for (size_t i = 0; i < policy->n_rules; i++)
                n_grants += (uint64_t)policy->rules[i].n_principals * policy->rules[i].n_keys;
        return n_grants;
}

static void draft_all(const struct policy *policy, struct grant_draft *drafts) {
        for (size_t i = 0; i < policy->n_rules; i++) {
                const struct policy_rule *rule = &policy->rules[i];

                for (size_t principal = 0; principal < rule->n_principals; principal++)
                        for (size_t keys = 0; keys < rule->n_keys; keys++)
                                *drafts++ = (struct grant_draft){
                                        &policy->principals[rule->first_principal + principal],
                                        &policy->keys[rule->first_keys + keys]
                                };
        }
}

/*
 * Return the grant that the grant `at` links to (policy/internal.h), or NO_GRANT. first: the first
 * grant of the grantee.
 */
static uint32_t find_next(const struct policy *policy, const struct grant_draft *drafts, uint32_t first,
                          uint32_t at) {
        uint32_t next = at > first ? at - 1 : NO_GRANT;

        while (next != NO_GRANT && !slice_starts_with(drafts[at].keys->prefix, drafts[next].keys->prefix))
                next = policy->grants[next].next;
        return next;
}

/* Fill in grantees and grants from the sorted drafts. */
static void compile_grants(struct policy *policy, const struct grant_draft *drafts, uint32_t n_drafts) {
        for (uint32_t i = 0; i < n_drafts; i++) {
                struct policy_grantee *grantee = &policy->grantees[policy->n_grantees];
                const struct policy_keys *keys = drafts[i].keys;

                if (i == 0 || policy_principal_compare(drafts[i - 1].principal, drafts[i].principal) != 0) {
                        *grantee = (struct policy_grantee){ .principal = *drafts[i].principal,
                                                            .first_grant = i };
                        policy->n_grantees++;
                } else {
                        grantee--;
                }
                grantee->n_grants++;
                grantee->access |= policy->rules[keys->rule].access;
                policy->grants[i] =
                        (struct policy_grant){ .keys = (uint32_t)(keys - policy->keys),
                                               .next = find_next(policy, drafts, grantee->first_grant, i) };
        }
}

int policy_compile(struct policy *policy, bool allows_unverified) {
        CLEANUP(cleanup_free) struct grant_draft *drafts = NULL;
        uint64_t n_grants = count_grants(policy);

        if (n_grants > POLICY_GRANTS_MAX)
                return POLICY_TOO_MANY;

        drafts = calloc((size_t)n_grants + 1, sizeof(*drafts));
        policy->grants = calloc((size_t)n_grants + 1, sizeof(*policy->grants));
        policy->grantees = calloc(policy->n_principals + 1, sizeof(*policy->grantees));
        if (!drafts || !policy->grants || !policy->grantees)
                return -ENOMEM;

        draft_all(policy, drafts);
        qsort(drafts, (size_t)n_grants, sizeof(*drafts), draft_compare);
        compile_grants(policy, drafts, (uint32_t)n_grants);
        policy->allows_unverified = allows_unverified;
        return POLICY_DONE;
}
