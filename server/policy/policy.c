/* SPDX-License-Identifier: Apache-2.0 */

#include "policy/policy.h"

#include <stdlib.h>

#include "policy/internal.h"

/* Cost of the binary search, in matching steps. */
#define LOOK_UP_STEPS 4

/* Compare lengths first: any total order will do, and this one is fast. */
int policy_name_compare(const struct policy_name *a, const struct policy_name *b) {
        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        if (a->name.length != b->name.length)
                return a->name.length < b->name.length ? -1 : 1;
        return slice_compare(a->name, b->name);
}

static const struct policy_holder *find_holder(const struct policy *policy, enum policy_holder_kind kind,
                                               struct slice name) {
        const struct policy_name wanted = { kind, name };
        size_t from = 0, to = policy->n_holders;

        while (from < to) {
                size_t middle = from + (to - from) / 2;
                int order = policy_name_compare(&policy->holders[middle].name, &wanted);

                if (order == 0)
                        return &policy->holders[middle];
                if (order < 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return NULL;
}

#define HOLDERS_MAX 3

/* Find the asker's holders. An unverified asker has none, unless the policy allows unverified origins. */
static size_t find_holders(const struct policy *policy, const struct request_origin *asker,
                           const struct policy_holder *holders[HOLDERS_MAX]) {
        const struct policy_name names[HOLDERS_MAX] = { { POLICY_ANYONE, { NULL, 0 } },
                                                        { POLICY_CLIENT, asker->client },
                                                        { POLICY_USER, asker->user } };
        size_t n = 0;

        if (!asker->is_verified && !policy->allows_unverified)
                return 0;
        for (size_t i = 0; i < HOLDERS_MAX; i++) {
                const struct policy_holder *holder = find_holder(policy, names[i].kind, names[i].name);

                if (holder)
                        holders[n++] = holder;
        }
        return n;
}

/* The last grant whose prefix does not sort after the key. */
static uint32_t last_not_greater(const struct policy *policy, const struct policy_holder *holder,
                                 struct slice key) {
        uint32_t from = holder->first_grant, to = holder->first_grant + holder->n_grants;

        while (from < to) {
                uint32_t middle = from + (to - from) / 2;

                if (slice_compare(policy->keys[policy->grants[middle].keys].prefix, key) <= 0)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from > holder->first_grant ? from - 1 : NO_GRANT;
}

static bool is_name(struct slice name) {
        return name.length > 0 && slice_is_utf8(name);
}

/* Return whether the asker has a value for each placeholder. */
static bool has_placeholder_values(const struct policy_keys *keys, const struct request_origin *asker) {
        for (size_t i = 0; i < keys->n_parts; i++)
                if ((keys->parts[i].kind == PART_CLIENT && !is_name(asker->client)) ||
                    (keys->parts[i].kind == PART_USER && !is_name(asker->user)))
                        return false;
        return true;
}

/* Match the key. The first `skipped` bytes are known to match. */
static bool matches_parts(const struct policy_keys *keys, const struct request_origin *asker,
                          struct slice key, size_t skipped, uint64_t *budget) {
        struct glob_part parts[POLICY_PARTS_MAX];

        if (keys->has_placeholders && !has_placeholder_values(keys, asker))
                return false;
        for (size_t i = 0; i < keys->n_parts; i++) {
                const struct policy_part *part = &keys->parts[i];

                parts[i] = (struct glob_part){ part->text, part->kind != PART_PATTERN };
                if (part->kind == PART_CLIENT)
                        parts[i].text = asker->client;
                if (part->kind == PART_USER)
                        parts[i].text = asker->user;
        }

        if (skipped > 0) {
                parts[0].text =
                        (struct slice){ parts[0].text.data + skipped, parts[0].text.length - skipped };
                key = (struct slice){ key.data + skipped, key.length - skipped };
        }
        return glob_match_parts(parts, keys->n_parts, key, budget);
}

static bool matches(const struct policy_keys *keys, const struct request_origin *asker, struct slice key,
                    uint64_t *budget) {
        struct slice prefix = keys->prefix;
        size_t skipped = prefix.length;

        if (keys->is_prefix_all)
                return key.length == prefix.length;
        if (!slice_ends_with(key, keys->suffix))
                return false;

        /* If the key is not UTF-8, the prefix may end within a character as glob_match() counts: match the whole key. */
        if (skipped > 0 && prefix.data[skipped - 1] >= 0x80)
                skipped = 0;
        return matches_parts(keys, asker, key, skipped, budget);
}

static const struct policy_keys *search(const struct policy *policy, const struct policy_holder *holder,
                                        const struct request_origin *asker, enum access access,
                                        struct slice key, uint64_t *steps) {
        uint32_t at;

        if ((holder->access & access) != access)
                return NULL;

        *steps -= *steps < LOOK_UP_STEPS ? *steps : LOOK_UP_STEPS;
        for (at = last_not_greater(policy, holder, key); at != NO_GRANT && *steps > 0;
             at = policy->grants[at].next) {
                const struct policy_keys *keys = &policy->keys[policy->grants[at].keys];

                (*steps)--;
                if (slice_starts_with(key, keys->prefix) &&
                    (policy->rules[keys->rule].access & access) == access &&
                    matches(keys, asker, key, steps))
                        return keys;
        }
        return NULL;
}

const struct policy_keys *policy_decide(const struct policy *policy, const struct request_origin *asker,
                                        enum access access, struct slice key, uint64_t *budget) {
        const struct policy_holder *holders[HOLDERS_MAX];
        uint64_t steps = *budget < POLICY_STEPS_MAX ? *budget : POLICY_STEPS_MAX, given = steps;
        size_t n_holders = find_holders(policy, asker, holders);
        const struct policy_keys *granting = NULL;

        for (size_t i = 0; i < n_holders && !granting; i++)
                granting = search(policy, holders[i], asker, access, key, &steps);

        *budget -= given - steps;
        return granting;
}

bool policy_grants_any(const struct policy *policy, const struct request_origin *asker, enum access access) {
        const struct policy_holder *holders[HOLDERS_MAX];
        size_t n_holders = find_holders(policy, asker, holders);

        for (size_t i = 0; i < n_holders; i++)
                if ((holders[i]->access & access) == access)
                        return true;
        return false;
}

/* Return whether the rule applies to one of the holders. */
static bool applies_to(const struct policy *policy, const struct policy_rule *rule,
                       const struct policy_holder *const *holders, size_t n_holders) {
        for (uint32_t i = 0; i < rule->n_names; i++)
                for (size_t j = 0; j < n_holders; j++)
                        if (policy_name_compare(&policy->names[rule->first_name + i], &holders[j]->name) ==
                            0)
                                return true;
        return false;
}

const struct policy_keys *policy_next_keys(const struct policy *policy, const struct request_origin *asker,
                                           enum access access, const struct policy_keys *after) {
        const struct policy_holder *holders[HOLDERS_MAX];
        size_t n_holders = find_holders(policy, asker, holders);

        for (size_t i = after ? (size_t)(after - policy->keys) + 1 : 0; i < policy->n_keys; i++) {
                const struct policy_keys *keys = &policy->keys[i];
                const struct policy_rule *rule = &policy->rules[keys->rule];

                if ((rule->access & access) == access && has_placeholder_values(keys, asker) &&
                    applies_to(policy, rule, holders, n_holders))
                        return keys;
        }
        return NULL;
}

struct policy_reason policy_reason(const struct policy *policy, const struct policy_keys *keys) {
        return (struct policy_reason){ policy->rules[keys->rule].name, keys->line };
}

size_t policy_n_rules(const struct policy *policy) {
        return policy->n_rules;
}

bool policy_allows_unverified(const struct policy *policy) {
        return policy->allows_unverified;
}
