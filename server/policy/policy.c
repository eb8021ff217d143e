/* SPDX-License-Identifier: Apache-2.0 */

#include "policy/policy.h"

#include <stdlib.h>

#include "base/glob.h"
#include "policy/internal.h"

/* Cost of the binary search, in matching steps. */
#define LOOK_UP_STEPS 4

/* Compare lengths first: any total order will do, and this one is fast. */
int policy_principal_compare(const struct policy_principal *a, const struct policy_principal *b) {
        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        if (a->name.length != b->name.length)
                return a->name.length < b->name.length ? -1 : 1;
        return slice_compare(a->name, b->name);
}

static const struct policy_grantee *find_grantee(const struct policy *policy,
                                                 enum policy_principal_kind kind, struct slice name) {
        const struct policy_principal wanted = { kind, name };
        size_t from = 0, to = policy->n_grantees;

        while (from < to) {
                size_t middle = from + (to - from) / 2;
                int order = policy_principal_compare(&policy->grantees[middle].principal, &wanted);

                if (order == 0)
                        return &policy->grantees[middle];
                if (order < 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return NULL;
}

#define GRANTEES_MAX 3

/*
 * Find the grantees of the origin: "anyone", its client id and its user name. An unverified origin
 * has none, unless the policy allows unverified origins.
 */
static size_t find_grantees(const struct policy *policy, const struct request_origin *origin,
                            const struct policy_grantee *grantees[GRANTEES_MAX]) {
        const struct policy_principal principals[GRANTEES_MAX] = { { POLICY_ANYONE, { NULL, 0 } },
                                                                   { POLICY_CLIENT, origin->client },
                                                                   { POLICY_USER, origin->user } };
        size_t n = 0;

        if (!origin->is_verified && !policy->allows_unverified)
                return 0;
        for (size_t i = 0; i < GRANTEES_MAX; i++) {
                const struct policy_grantee *grantee =
                        find_grantee(policy, principals[i].kind, principals[i].name);

                if (grantee)
                        grantees[n++] = grantee;
        }
        return n;
}

/* Return the grantee's last grant whose prefix does not sort after the key, or NO_GRANT. */
static uint32_t last_not_greater(const struct policy *policy, const struct policy_grantee *grantee,
                                 struct slice key) {
        uint32_t from = grantee->first_grant, to = grantee->first_grant + grantee->n_grants;

        while (from < to) {
                uint32_t middle = from + (to - from) / 2;

                if (slice_compare(policy->keys[policy->grants[middle].keys].prefix, key) <= 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from > grantee->first_grant ? from - 1 : NO_GRANT;
}

/* Return whether the client id or user name can replace a placeholder. */
static bool is_placeholder_value(struct slice name) {
        return name.length > 0 && slice_is_utf8(name);
}

/* Return whether the origin has a value for each placeholder. */
static bool has_placeholder_values(const struct policy_keys *keys, const struct request_origin *origin) {
        for (size_t i = 0; i < keys->n_parts; i++)
                if ((keys->parts[i].kind == PART_CLIENT && !is_placeholder_value(origin->client)) ||
                    (keys->parts[i].kind == PART_USER && !is_placeholder_value(origin->user)))
                        return false;
        return true;
}

/* A decision in progress. */
struct decision {
        const struct policy *policy;
        const struct request_origin *origin;
        enum access access;
        struct slice key;
        uint64_t budget; /* matching steps */
};

/* Match the key. Its first `skipped` bytes equal the literal prefix and are not compared again. */
static bool matches_parts(struct decision *decision, const struct policy_keys *keys, size_t skipped) {
        const struct request_origin *origin = decision->origin;
        struct glob_part parts[POLICY_PARTS_MAX];
        struct slice key = decision->key;

        if (!has_placeholder_values(keys, origin))
                return false;
        for (size_t i = 0; i < keys->n_parts; i++) {
                const struct policy_part *part = &keys->parts[i];

                parts[i] = (struct glob_part){ part->text, part->kind != PART_PATTERN };
                if (part->kind == PART_CLIENT)
                        parts[i].text = origin->client;
                if (part->kind == PART_USER)
                        parts[i].text = origin->user;
        }

        if (skipped > 0) {
                parts[0].text = slice_skip(parts[0].text, skipped);
                key = slice_skip(key, skipped);
        }
        return glob_match_parts(parts, keys->n_parts, key, &decision->budget);
}

/* Match a key that begins with the literal prefix. */
static bool matches(struct decision *decision, const struct policy_keys *keys) {
        struct slice prefix = keys->prefix;
        size_t skipped = prefix.length;

        if (keys->is_one_key)
                return decision->key.length == prefix.length;
        if (!slice_ends_with(decision->key, keys->suffix))
                return false;

        /*
         * If the prefix ends with a non-ASCII character, match the whole key. The matcher treats a
         * byte and the UTF-8 continuation bytes after it as one character. A key that is not UTF-8
         * may add continuation bytes to the last character of the prefix: for example, prefix C3 A9
         * and key C3 A9 80. From the start, the matcher treats C3 A9 80 as one character. Without
         * the prefix, it would treat 80 as a character of its own.
         */
        if (skipped > 0 && prefix.data[skipped - 1] >= 0x80)
                skipped = 0;
        return matches_parts(decision, keys, skipped);
}

static const struct policy_keys *find_grant(struct decision *decision,
                                            const struct policy_grantee *grantee) {
        const struct policy *policy = decision->policy;
        enum access access = decision->access;
        uint32_t at;

        if ((grantee->access & access) != access)
                return NULL;

        decision->budget -= decision->budget < LOOK_UP_STEPS ? decision->budget : LOOK_UP_STEPS;
        for (at = last_not_greater(policy, grantee, decision->key); at != NO_GRANT && decision->budget > 0;
             at = policy->grants[at].next) {
                const struct policy_keys *keys = &policy->keys[policy->grants[at].keys];

                decision->budget--;
                if (slice_starts_with(decision->key, keys->prefix) &&
                    (policy->rules[keys->rule].access & access) == access && matches(decision, keys))
                        return keys;
        }
        return NULL;
}

const struct policy_keys *policy_decide(const struct policy *policy, const struct request_origin *origin,
                                        enum access access, struct slice key, uint64_t *budget) {
        uint64_t given = *budget < POLICY_STEPS_MAX ? *budget : POLICY_STEPS_MAX;
        struct decision decision = { policy, origin, access, key, given };
        const struct policy_grantee *grantees[GRANTEES_MAX];
        size_t n_grantees = find_grantees(policy, origin, grantees);
        const struct policy_keys *granting = NULL;

        for (size_t i = 0; i < n_grantees && !granting; i++)
                granting = find_grant(&decision, grantees[i]);

        *budget -= given - decision.budget;
        return granting;
}

bool policy_grants_any(const struct policy *policy, const struct request_origin *origin,
                       enum access access) {
        const struct policy_grantee *grantees[GRANTEES_MAX];
        size_t n_grantees = find_grantees(policy, origin, grantees);

        for (size_t i = 0; i < n_grantees; i++)
                if ((grantees[i]->access & access) == access)
                        return true;
        return false;
}

struct policy_location policy_location(const struct policy *policy, const struct policy_keys *keys) {
        return (struct policy_location){ policy->rules[keys->rule].name, keys->line };
}

size_t policy_n_rules(const struct policy *policy) {
        return policy->n_rules;
}
