/* SPDX-License-Identifier: Apache-2.0 */

/* Valid and invalid parts of a policy. */

#include <criterion/criterion.h>
#include <stdio.h>

#include "policy/policy_build.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        enum policy_keys_kind kind;
        struct slice text;
        int outcome;
} texts[] = {
        { "an empty pattern", POLICY_PATTERN, S(""), POLICY_EMPTY },
        { "an empty string", POLICY_STRING, S(""), POLICY_EMPTY },
        { "no bytes", POLICY_BINARY, S(""), POLICY_EMPTY },
        { "a pattern that is not UTF-8", POLICY_PATTERN, S("\xFF"), POLICY_NOT_UTF8 },
        { "a string that is not UTF-8", POLICY_STRING, S("a\xC3"), POLICY_NOT_UTF8 },
        { "bytes that are not UTF-8", POLICY_BINARY, S("\xFF"), POLICY_DONE },
        { "a class that is never closed", POLICY_PATTERN, S("a[b"), POLICY_OPEN_CLASS },
        { "an empty class", POLICY_PATTERN, S("a[]"), POLICY_OPEN_CLASS },
        { "a class that a placeholder would close", POLICY_PATTERN, S("[{client}"), POLICY_OPEN_CLASS },
        { "two stars between slashes", POLICY_PATTERN, S("a/**/b"), POLICY_DONE },
        { "two stars between a placeholder and a slash", POLICY_PATTERN, S("{client}/**/{user}"),
          POLICY_DONE },
        { "two stars after a name", POLICY_PATTERN, S("a**"), POLICY_MISPLACED_STARS },
        { "two stars after a placeholder", POLICY_PATTERN, S("{client}**"), POLICY_MISPLACED_STARS },
        { "two stars before a placeholder", POLICY_PATTERN, S("**{client}"), POLICY_MISPLACED_STARS },
        { "three stars", POLICY_PATTERN, S("***"), POLICY_MISPLACED_STARS },
        { "stars in a string", POLICY_STRING, S("a***"), POLICY_DONE },
        { "a string with a bracket", POLICY_STRING, S("a[b"), POLICY_DONE },
        { "a placeholder in a class", POLICY_PATTERN, S("[{client}]"), POLICY_PLACEHOLDER_IN_CLASS },
        { "a placeholder in a longer class", POLICY_PATTERN, S("[ab{user}c]"), POLICY_PLACEHOLDER_IN_CLASS },
        { "an unknown placeholder", POLICY_PATTERN, S("own/{clientid}"), POLICY_UNKNOWN_PLACEHOLDER },
        { "an unknown placeholder in a string", POLICY_STRING, S("{Client}"), POLICY_UNKNOWN_PLACEHOLDER },
        { "an unknown placeholder of two words", POLICY_STRING, S("{client.id}"),
          POLICY_UNKNOWN_PLACEHOLDER },
        { "a placeholder with blanks", POLICY_STRING, S("{ client }"), POLICY_UNKNOWN_PLACEHOLDER },
        { "AIO's client id", POLICY_PATTERN, S("{principal.clientId}/*"), POLICY_DONE },
        { "AIO's user name in a string", POLICY_STRING, S("{principal.username}"), POLICY_DONE },
        { "AIO's client id in another case", POLICY_STRING, S("{principal.clientid}"),
          POLICY_UNKNOWN_PLACEHOLDER },
        { "AIO's client id without an end", POLICY_STRING, S("{principal.clientId"),
          POLICY_UNKNOWN_PLACEHOLDER },
        { "AIO's client id in a class", POLICY_PATTERN, S("[{principal.clientId}]"),
          POLICY_PLACEHOLDER_IN_CLASS },
        { "AIO's attribute", POLICY_PATTERN, S("a/{principal.attributes.floor7}/*"),
          POLICY_ATTRIBUTE_PLACEHOLDER },
        { "AIO's attribute in quotes", POLICY_STRING, S("{principal.attributes['a b']}"),
          POLICY_ATTRIBUTE_PLACEHOLDER },
        { "AIO's attribute with an escaped brace", POLICY_PATTERN, S("[{]principal.attributes.a}"),
          POLICY_DONE },
        { "JSON", POLICY_STRING, S("{\"client\":7}"), POLICY_DONE },
        { "JSON in JSON", POLICY_STRING, S("{\"a\":{\"b\":[true]}}"), POLICY_DONE },
        { "words in braces in a class", POLICY_PATTERN, S("[{a}]"), POLICY_DONE },
        { "words in braces in bytes", POLICY_BINARY, S("{clientid}"), POLICY_DONE },
        { "a brace", POLICY_STRING, S("{"), POLICY_DONE },
        { "braces around nothing", POLICY_STRING, S("{}"), POLICY_DONE },
        { "braces around a number", POLICY_STRING, S("{7}"), POLICY_DONE },
        { "a brace in a class", POLICY_PATTERN, S("[{]clientid}"), POLICY_DONE },
        { "four placeholders", POLICY_PATTERN, S("{user}{user}{user}{client}"), POLICY_DONE },
        { "text around four placeholders", POLICY_PATTERN, S("a{user}a{user}a{user}a{client}a"),
          POLICY_DONE },
        { "five placeholders", POLICY_PATTERN, S("{user}{user}{user}{user}{user}"),
          POLICY_TOO_MANY_PLACEHOLDERS },
};

Test(policy_build, accepts_only_valid_keys) {
        for (size_t i = 0; i < N_ROWS(texts); i++) {
                struct policy *policy;

                cr_assert_eq(policy_new(&policy), POLICY_DONE);
                cr_assert_eq(policy_add_rule(policy, S("rule")), POLICY_DONE);
                cr_expect_eq(policy_add_keys(policy, texts[i].kind, texts[i].text, 1), texts[i].outcome,
                             ROW(texts, i));
                policy_free(policy);
        }
}

Test(policy_build, accepts_only_valid_names) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        cr_assert_eq(policy_add_rule(policy, S("rule")), POLICY_DONE);
        cr_expect_eq(policy_add_principal(policy, POLICY_CLIENT, S("")), POLICY_EMPTY);
        cr_expect_eq(policy_add_principal(policy, POLICY_USER, S("")), POLICY_EMPTY);
        cr_expect_eq(policy_add_principal(policy, POLICY_USER, S("\xFF")), POLICY_NOT_UTF8);
        cr_expect_eq(policy_add_principal(policy, POLICY_USER, S("*")), POLICY_DONE);
        policy_free(policy);
}

Test(policy_build, has_limits) {
        struct policy *policy;
        char key[16];

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        for (size_t i = 0; i < POLICY_RULES_MAX; i++)
                cr_assert_eq(policy_add_rule(policy, S("rule")), POLICY_DONE);
        cr_expect_eq(policy_add_rule(policy, S("rule")), POLICY_TOO_MANY);
        for (size_t i = 0; i < 1001; i++) {
                snprintf(key, sizeof(key), "%zu", i);
                cr_assert_eq(policy_add_principal(policy, POLICY_CLIENT, slice_from_string(key)),
                             POLICY_DONE);
                cr_assert_eq(policy_add_keys(policy, POLICY_STRING, slice_from_string(key), 1), POLICY_DONE);
        }
        cr_expect_eq(policy_compile(policy, false), POLICY_TOO_MANY);

        for (size_t i = 1001; i < POLICY_PRINCIPALS_MAX; i++)
                cr_assert_eq(policy_add_principal(policy, POLICY_CLIENT, S("c")), POLICY_DONE);
        cr_expect_eq(policy_add_principal(policy, POLICY_CLIENT, S("c")), POLICY_TOO_MANY);
        for (size_t i = 1001; i < POLICY_KEYS_MAX; i++)
                cr_assert_eq(policy_add_keys(policy, POLICY_STRING, S("k"), 1), POLICY_DONE);
        cr_expect_eq(policy_add_keys(policy, POLICY_STRING, S("k"), 1), POLICY_TOO_MANY);
        policy_free(policy);
}
