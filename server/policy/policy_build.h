/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy.h"

/*
 * Makes a policy: a rule is begun, then says to whom it grants which access to which keys, in any order; at the end all
 * is compiled. Each returns POLICY_DONE, another outcome, for people to correct, or -ENOMEM; then nothing was added.
 */

/* More would be no policy that anybody has written, and take memory and time to compile. */
#define POLICY_RULES_MAX        10000
#define POLICY_NAMES_MAX        100000 /* of clients and users, all told */
#define POLICY_KEYS_MAX         100000
#define POLICY_GRANTS_MAX       1000000 /* each name of a rule with each of its keys */
#define POLICY_PLACEHOLDERS_MAX 4       /* in one pattern */

enum policy_outcome {
        POLICY_DONE,
        POLICY_EMPTY,
        POLICY_NOT_UTF8,
        POLICY_OPEN_CLASS,           /* a '[' that is never closed */
        POLICY_PLACEHOLDER_IN_CLASS, /* between '[' and ']' it would not stand for anybody */
        POLICY_UNKNOWN_PLACEHOLDER,  /* {word} */
        POLICY_TOO_MANY_PLACEHOLDERS,
        POLICY_TOO_MANY,
        N_POLICY_OUTCOMES,
};

int policy_new(struct policy **ret_policy);

int policy_add_rule(struct policy *policy, struct slice name);

/* The rest is of the rule that was added last. What it grants, nothing before: */
void policy_set_access(struct policy *policy, enum access access);

enum policy_holder_kind {
        POLICY_ANYONE,
        POLICY_CLIENT, /* by client id */
        POLICY_USER,   /* by user name */
};

/* The name is copied and taken literally; POLICY_ANYONE has none. */
int policy_add_holder(struct policy *policy, enum policy_holder_kind kind, struct slice name);

enum policy_keys_kind {
        POLICY_PATTERN, /* a glob: common/base/glob.h; UTF-8 */
        POLICY_STRING,  /* one key; UTF-8 */
        POLICY_BINARY,  /* one key, any bytes */
};

/*
 * In a pattern and a string {client} and {user} stand for the asker's, each character of which stands for itself; an
 * asker that has none is not granted the key. line: where it stands, for policy_reason(). The text is copied.
 */
int policy_add_keys(struct policy *policy, enum policy_keys_kind kind, struct slice text, unsigned int line);

/* Ends it: from here on it decides, and nothing is added. */
int policy_compile(struct policy *policy, bool allows_unverified);
