/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/glob.h"
#include "policy/policy_build.h"

/*
 * Data structures shared by the .c files of this folder. Internal to them.
 *
 * A *holder* is a subject of grants: "anyone", a client id, or a user name. A request has at most three holders. The grants
 * of a holder, from all rules, are sorted by the literal prefix of their keys.
 *
 * Each grant links to the grant with the next shorter prefix of its own prefix. To find all grants whose prefix is a prefix
 * of a key, binary-search the last prefix that does not sort after the key, and follow the links.
 */

#define POLICY_PARTS_MAX (2 * POLICY_PLACEHOLDERS_MAX + 1)

struct policy_part {
        enum { PART_PATTERN, PART_LITERAL, PART_CLIENT, PART_USER } kind;
        struct slice text; /* points into policy_keys.text */
};

struct policy_keys {
        uint32_t rule;
        unsigned int line;
        struct slice text;   /* owned */
        struct slice prefix; /* literal prefix of every matching key */
        struct slice
                suffix; /* literal suffix of every matching key: rejects most keys if the prefix is empty */
        bool is_prefix_all; /* only the key that equals the prefix matches */
        bool has_placeholders;
        size_t n_parts;
        struct policy_part parts[POLICY_PARTS_MAX];
};

struct policy_rule {
        struct slice name; /* owned */
        enum access access;
        uint32_t first_name, n_names; /* in policy->names */
        uint32_t first_keys, n_keys;  /* in policy->keys */
};

struct policy_name {
        enum policy_holder_kind kind;
        struct slice name; /* owned */
};

#define NO_GRANT UINT32_MAX

struct policy_grant {
        uint32_t keys;
        uint32_t next; /* the grant with the next shorter prefix, or NO_GRANT */
};

struct policy_holder {
        struct policy_name name;
        unsigned int access; /* union of its grants */
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
        struct policy_holder *holders; /* sorted by policy_name_compare() */
        size_t n_holders;
        struct policy_grant *grants;
};

int policy_name_compare(const struct policy_name *a, const struct policy_name *b);

/* Parse keys->text into parts (policy_keys.c). */
enum policy_outcome policy_keys_parse(struct policy_keys *keys, enum policy_keys_kind kind);
