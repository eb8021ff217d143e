/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/glob.h"
#include "policy/policy_build.h"

/*
 * What policy.c and policy_build.c share. Internal to them.
 *
 * Who asks has at most three *holders* of grants: anyone, its client id, its user name. Each holds what all rules grant
 * it, ordered by the bytes that the key must begin with. Of these beginnings, those that a key really begins with form a
 * chain, each the beginning of the one before: the last in order that is not greater than the key leads to them all.
 */

#define POLICY_PARTS_MAX (2 * POLICY_PLACEHOLDERS_MAX + 1)

struct policy_part {
        enum { PART_PATTERN, PART_LITERAL, PART_CLIENT, PART_USER } kind;
        struct slice text; /* points into the keys' text */
};

struct policy_keys {
        uint32_t rule;
        unsigned int line;
        struct slice text;   /* owned */
        struct slice prefix; /* the keys begin with it */
        struct slice suffix; /* and end with it, as most of those that begin with a wildcard do not */
        bool is_prefix_all;  /* the key is the prefix */
        bool has_placeholders;
        size_t n_parts;
        struct policy_part parts[POLICY_PARTS_MAX];
};

struct policy_rule {
        struct slice name; /* owned */
        enum access access;
        uint32_t first_name, n_names; /* of policy->names */
        uint32_t first_keys, n_keys;
};

struct policy_name {
        enum policy_holder_kind kind;
        struct slice name; /* owned */
};

#define NO_GRANT UINT32_MAX

struct policy_grant {
        uint32_t keys;
        uint32_t next; /* of the chain: the next shorter beginning */
};

struct policy_holder {
        struct policy_name name;
        unsigned int access; /* all that its grants give */
        uint32_t first_grant, n_grants;
};

struct policy {
        bool allows_unverified;
        struct policy_rule *rules;
        size_t n_rules, rules_capacity;
        struct policy_name *names;
        size_t n_names, names_capacity;
        struct policy_keys *keys;
        size_t n_keys, keys_capacity;
        struct policy_holder *holders; /* in the order of policy_name_compare() */
        size_t n_holders;
        struct policy_grant *grants;
};

int policy_name_compare(const struct policy_name *a, const struct policy_name *b);

/* policy_keys.c: finds the parts of its text. Returns as policy_add_keys(). */
enum policy_outcome policy_keys_parse(struct policy_keys *keys, enum policy_keys_kind kind);
