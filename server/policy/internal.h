/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy_build.h"

/*
 * Data structures shared by the .c files of this folder. Internal to them.
 *
 * A *principal* is "anyone", a client id, or a user name. A *line of keys* (struct policy_keys) is
 * a pattern or one key, on one line of a rule. A *grant* is one line of keys for one principal. A
 * *grantee* is a principal with its grants of all rules, sorted by the literal prefix of their
 * keys. A request has at most three grantees: "anyone", the client id, and the user name of its
 * origin.
 *
 * Each grant A links to an earlier grant of the same grantee: the last grant B such that the prefix
 * of A begins with the prefix of B. For example, "a/b/" links to "a/", and "a/" links to "". To
 * find the grants for a key, a binary search finds the last grant whose prefix does not sort after
 * the key. From this grant, the links lead to every grant whose prefix is a prefix of the key. They
 * also lead to grants with other prefixes, so the search compares each prefix with the key.
 */

#define POLICY_PARTS_MAX (2 * POLICY_PLACEHOLDERS_MAX + 1)

struct policy_part {
        enum policy_part_kind { PART_PATTERN, PART_LITERAL, PART_CLIENT, PART_USER } kind;
        struct slice text; /* points into policy_keys.text */
};

struct policy_keys {
        uint32_t rule;
        unsigned int line;
        struct slice text;   /* owned */
        struct slice prefix; /* literal prefix of every matching key */
        struct slice suffix; /* literal suffix of every matching key: a fast check before the matching */
        bool is_one_key;     /* only the key that equals the prefix matches */
        size_t n_parts;
        struct policy_part parts[POLICY_PARTS_MAX];
};

struct policy_rule {
        struct slice name; /* owned */
        enum access access;
        uint32_t first_principal, n_principals; /* in policy->principals */
        uint32_t first_keys, n_keys;            /* in policy->keys */
};

struct policy_principal {
        enum policy_principal_kind kind;
        struct slice name; /* owned */
};

#define NO_GRANT UINT32_MAX

struct policy_grant {
        uint32_t keys; /* index in policy->keys */
        uint32_t next; /* the grant that this one links to; or NO_GRANT */
};

struct policy_grantee {
        struct policy_principal principal;
        unsigned int access; /* union of its grants */
        uint32_t first_grant, n_grants;
};

struct policy {
        bool allows_unverified;
        struct policy_rule *rules;
        size_t n_rules, rules_capacity;
        struct policy_principal *principals;
        size_t n_principals, principals_capacity;
        struct policy_keys *keys;
        size_t n_keys, keys_capacity;
        struct policy_grantee *grantees; /* sorted by policy_principal_compare() */
        size_t n_grantees;
        struct policy_grant *grants;
};

int policy_principal_compare(const struct policy_principal *a, const struct policy_principal *b);

/* Parse keys->text into parts (policy_keys.c). */
enum policy_outcome policy_keys_parse(struct policy_keys *keys, enum policy_keys_kind kind);
