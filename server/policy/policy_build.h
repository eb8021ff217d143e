/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy.h"

/*
 * Build a policy: call policy_new(); for each rule, policy_add_rule() and then, in any order,
 * policy_set_access(), policy_add_principal() and policy_add_keys(); at the end policy_compile().
 *
 * Functions return POLICY_DONE (0), -ENOMEM, or another policy_outcome for an error in the policy
 * file. On error, they add nothing.
 */

/* Limits on memory and compile time, far above realistic policies. */
#define POLICY_RULES_MAX        10000
#define POLICY_PRINCIPALS_MAX   100000  /* client ids and user names of all rules */
#define POLICY_KEYS_MAX         100000  /* lines of keys of all rules */
#define POLICY_GRANTS_MAX       1000000 /* sum over all rules: principals times lines of keys */
#define POLICY_PLACEHOLDERS_MAX 4       /* in one pattern */

enum policy_outcome {
        POLICY_DONE,
        POLICY_EMPTY, /* an empty client id, user name or key */
        POLICY_NOT_UTF8,
        POLICY_OPEN_CLASS,            /* GLOB_OPEN_CLASS */
        POLICY_MISPLACED_STARS,       /* GLOB_MISPLACED_STARS */
        POLICY_PLACEHOLDER_IN_CLASS,  /* a placeholder between '[' and ']' */
        POLICY_ATTRIBUTE_PLACEHOLDER, /* {principal.attributes.X} */
        POLICY_UNKNOWN_PLACEHOLDER,   /* other text in braces that looks like a placeholder */
        POLICY_TOO_MANY_PLACEHOLDERS,
        POLICY_TOO_MANY, /* a limit above is exceeded, other than POLICY_PLACEHOLDERS_MAX */
        N_POLICY_OUTCOMES,
};

int policy_new(struct policy **ret_policy);

int policy_add_rule(struct policy *policy, struct slice name);

/* Set the access that the last added rule grants. Default: none. */
void policy_set_access(struct policy *policy, enum access access);

enum policy_principal_kind {
        POLICY_ANYONE,
        POLICY_CLIENT, /* by client id */
        POLICY_USER,   /* by user name */
};

/*
 * Add a client or user to the last added rule. The name is copied and has no wildcards; it is
 * ignored for POLICY_ANYONE.
 */
int policy_add_principal(struct policy *policy, enum policy_principal_kind kind, struct slice name);

enum policy_keys_kind {
        POLICY_PATTERN, /* a glob pattern (common/base/glob.h); UTF-8 */
        POLICY_STRING,  /* one key; UTF-8 */
        POLICY_BINARY,  /* one key, any bytes */
};

/*
 * Add keys to the last added rule. In a pattern and a string, {client} and {user} are replaced by
 * the origin's client id and user name; wildcard characters in these values have no meaning.
 * {principal.clientId} and {principal.username} are the spellings of Azure IoT Operations for them.
 * Other text in braces is refused if it has only letters, blanks and "_-.", or if it begins with
 * "{principal". A key with such a text is written with [{] in a pattern, or as POLICY_BINARY. Keys
 * with {client} grant nothing if the origin has no client id, or one that is not UTF-8. The same
 * holds for {user} and the user name. line: the line number for policy_location(). The text is
 * copied.
 */
int policy_add_keys(struct policy *policy, enum policy_keys_kind kind, struct slice text, unsigned int line);

/*
 * Finish building. allows_unverified: rules also apply to origins that are not verified. Returns
 * POLICY_DONE, POLICY_TOO_MANY or -ENOMEM.
 */
int policy_compile(struct policy *policy, bool allows_unverified);
