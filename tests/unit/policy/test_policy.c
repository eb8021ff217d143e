/* SPDX-License-Identifier: Apache-2.0 */

/* Decisions of a policy. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/policy_build.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL
#define NO_NAME                                                                                             \
        { NULL, 0 }
#define R  ACCESS_READ
#define W  ACCESS_WRITE
#define RW ACCESS_READWRITE

struct holder {
        enum policy_principal_kind kind;
        const char *name;
};

struct keys {
        enum policy_keys_kind kind;
        struct slice text;
};

struct rule {
        const char *name;
        enum access access;
        struct holder holders[3];
        struct keys keys[4];
};

static void add_rule(struct policy *policy, const struct rule *rule) {
        static unsigned int line;

        cr_assert_eq(policy_add_rule(policy, slice_from_string(rule->name)), POLICY_DONE);
        policy_set_access(policy, rule->access);
        for (size_t i = 0; i < 3 && (i == 0 || rule->holders[i].name); i++)
                cr_assert_eq(policy_add_principal(policy, rule->holders[i].kind,
                                                  slice_from_string(rule->holders[i].name)),
                             POLICY_DONE);
        for (size_t i = 0; i < 4 && rule->keys[i].text.data; i++)
                cr_assert_eq(policy_add_keys(policy, rule->keys[i].kind, rule->keys[i].text, ++line),
                             POLICY_DONE, "%s", rule->name);
}

#define CLIENT(id)                                                                                          \
        { POLICY_CLIENT, id }
#define USER(name)                                                                                          \
        { POLICY_USER, name }
#define ANYONE                                                                                              \
        { POLICY_ANYONE, NULL }
#define PATTERN(p)                                                                                          \
        { POLICY_PATTERN, S(p) }
#define STRING(s)                                                                                           \
        { POLICY_STRING, S(s) }
#define BINARY(b)                                                                                           \
        { POLICY_BINARY, S(b) }

/* The policy of all tests. */
static const struct rule rules[] = {
        { "colors", R, { ANYONE }, { PATTERN("colors/*") } },
        { "painter", W, { CLIENT("painter") }, { PATTERN("colors/[a-f]*"), STRING("colors/*") } },
        { "own", RW, { ANYONE }, { PATTERN("own/{client}/*"), STRING("home/{client}") } },
        { "users", RW, { ANYONE }, { PATTERN("users/{user}/*"), PATTERN("{user}-{client}-?") } },
        { "aio",
          RW,
          { USER("aio") },
          { PATTERN("aio/{principal.clientId}/**/{principal.username}"),
            STRING("aio/{principal.username}-{principal.clientId}") } },
        { "levels", RW, { CLIENT("levels") }, { PATTERN("levels/**/end"), PATTERN("**/last") } },
        { "gateway", RW, { USER("gateway"), CLIENT("gate") }, { PATTERN("number[0-9]"), PATTERN("char?") } },
        { "binary",
          R,
          { CLIENT("b") },
          { BINARY("\x00\xFF{client}*"), PATTERN("\xC3\xA4?"), STRING("\xC3\xA4") } },
        { "admin", RW, { USER("admin") }, { PATTERN("*") } },
        { "reader", R, { USER("reader") }, { PATTERN("*") } },
        { "escape",
          R,
          { CLIENT("e") },
          { PATTERN("[{]client}"), PATTERN("a[*]b"), PATTERN("{client}[{]user}") } },
        { "nested",
          R,
          { CLIENT("n") },
          { PATTERN("a*"), PATTERN("ab*"), PATTERN("abc"), PATTERN("abcd*e") } },
        { "nested write", W, { CLIENT("n") }, { PATTERN("a?"), PATTERN("abcd"), PATTERN("b*") } },
};

static const struct {
        const char *name;
        struct slice client, user;
        enum access access;
        struct slice key;
        const char *rule; /* NULL: denied */
} decisions[] = {
        { "anyone may read", S("c"), NO_NAME, R, S("colors/red"), "colors" },
        { "a star matches the empty text", S("c"), NO_NAME, R, S("colors/"), "colors" },
        { "a prefix of the pattern", S("c"), NO_NAME, R, S("colors"), NULL },
        { "the end of another key", S("c"), NO_NAME, R, S("xcolors/red"), NULL },
        { "read access does not allow writing", S("c"), NO_NAME, W, S("colors/red"), NULL },
        { "a client without a name is anyone", NO_NAME, NO_NAME, R, S("colors/red"), "colors" },
        { "a client by its id", S("painter"), NO_NAME, W, S("colors/blue"), "painter" },
        { "outside the class", S("painter"), NO_NAME, W, S("colors/red"), NULL },
        { "a string is not a pattern", S("painter"), NO_NAME, W, S("colors/*"), "painter" },
        { "another client", S("painter2"), NO_NAME, W, S("colors/blue"), NULL },
        { "the beginning of its id", S("painte"), NO_NAME, W, S("colors/blue"), NULL },
        { "a user of that name is not that client", S("c"), S("painter"), W, S("colors/blue"), NULL },

        { "its own key", S("c1"), NO_NAME, W, S("own/c1/x"), "own" },
        { "another client's key", S("c1"), NO_NAME, W, S("own/c2/x"), NULL },
        { "an id with the same prefix", S("c1"), NO_NAME, W, S("own/c12/x"), NULL },
        { "its own string", S("c1"), NO_NAME, W, S("home/c1"), "own" },
        { "a longer key than its own string", S("c1"), NO_NAME, W, S("home/c1/x"), NULL },
        { "an id of a star", S("*"), NO_NAME, W, S("own/victim/x"), NULL },
        { "an id of a star, its own key", S("*"), NO_NAME, W, S("own/*/x"), "own" },
        { "an id of a question mark", S("??????"), NO_NAME, W, S("own/victim/x"), NULL },
        { "an id of a class", S("[a-z]"), NO_NAME, W, S("own/v/x"), NULL },
        { "an id of a class, its own key", S("[a-z]"), NO_NAME, W, S("own/[a-z]/x"), "own" },
        { "an id that opens a class", S("["), NO_NAME, W, S("own/v]/x"), NULL },
        { "an id that opens a class, its own key", S("["), NO_NAME, W, S("own/[/x"), "own" },
        { "an id with a star", S("v*"), NO_NAME, W, S("home/victim"), NULL },
        { "an id that is a placeholder", S("{user}"), S("u"), W, S("own/u/x"), NULL },
        { "no id", NO_NAME, S("u"), W, S("own//x"), NULL },
        { "no id, a string", NO_NAME, S("u"), W, S("home/"), NULL },
        { "an id that is not UTF-8", S("\xFF"), NO_NAME, W, S("own/\xFF/x"), NULL },
        { "an id of several bytes", S("\xC3\xA4"), NO_NAME, W, S("own/\xC3\xA4/x"), "own" },

        { "a user's own key", S("c"), S("u"), R, S("users/u/x"), "users" },
        { "without a user", S("c"), NO_NAME, R, S("users//x"), NULL },
        { "a client id is not a user name", S("u"), NO_NAME, R, S("users/u/x"), NULL },
        { "both", S("c"), S("u"), R, S("u-c-1"), "users" },
        { "both, in the wrong order", S("c"), S("u"), R, S("c-u-1"), NULL },
        { "a client id that contains the separator", S("c-d"), S("u"), R, S("u-c-d-1"), "users" },
        { "a user of a star", S("c"), S("*"), R, S("users/u/x"), NULL },

        { "AIO's variables", S("c"), S("aio"), W, S("aio/c/aio"), "aio" },
        { "AIO's variables with levels between", S("c"), S("aio"), W, S("aio/c/x/y/aio"), "aio" },
        { "AIO's variables in a string", S("c"), S("aio"), W, S("aio/aio-c"), "aio" },
        { "AIO's variables of another client", S("c"), S("aio"), W, S("aio/d/aio"), NULL },
        { "AIO's variables, another user", S("c"), S("aio"), W, S("aio/c/u"), NULL },
        { "AIO's variables, a client id of stars", S("**"), S("aio"), W, S("aio/x/aio"), NULL },

        { "two stars, no level", S("levels"), NO_NAME, R, S("levels/end"), "levels" },
        { "two stars, levels", S("levels"), NO_NAME, R, S("levels/a/b/end"), "levels" },
        { "two stars, half a level", S("levels"), NO_NAME, R, S("levels/a-end"), NULL },
        { "two stars at the start, no level", S("levels"), NO_NAME, R, S("last"), "levels" },
        { "two stars at the start, a level", S("levels"), NO_NAME, R, S("x/last"), "levels" },
        { "two stars at the start, half a level", S("levels"), NO_NAME, R, S("xlast"), NULL },

        { "a class", S("c"), S("gateway"), W, S("number7"), "gateway" },
        { "outside a class", S("c"), S("gateway"), W, S("numberx"), NULL },
        { "two digits for one class", S("c"), S("gateway"), W, S("number77"), NULL },
        { "'?' matches a character", S("gate"), NO_NAME, R, S("char1"), "gateway" },
        { "'?' matches a character of several bytes", S("gate"), NO_NAME, R, S("char\xC3\xA4"), "gateway" },
        { "'?' requires a character", S("gate"), NO_NAME, R, S("char"), NULL },
        { "neither client nor user", S("gateway"), S("gate"), R, S("char1"), NULL },

        { "bytes", S("b"), NO_NAME, R, S("\x00\xFF{client}*"), "binary" },
        { "bytes are not a pattern", S("b"), NO_NAME, R, S("\x00\xFF{client}x"), NULL },
        { "bytes have no placeholder", S("b"), NO_NAME, R,
          S("\x00\xFF"
            "b*"),
          NULL },
        { "up to a NUL", S("b"), NO_NAME, R, S("\x00"), NULL },
        { "after a character of two bytes", S("b"), NO_NAME, R, S("\xC3\xA4x"), "binary" },
        { "an invalid byte after a character", S("b"), NO_NAME, R, S("\xC3\xA4\x80"), NULL },
        { "a character", S("b"), NO_NAME, R, S("\xC3\xA4"), "binary" },

        { "everything", S("c"), S("admin"), W, S("x"), "admin" },
        { "everything, not UTF-8", S("c"), S("admin"), W, S("\xFF\x00"), "admin" },
        { "everything to read", S("c"), S("reader"), R, S("x"), "reader" },
        { "reading everything is not writing it", S("c"), S("reader"), W, S("x"), NULL },

        { "a literal brace", S("e"), S("u"), R, S("{client}"), "escape" },
        { "a literal brace is not a placeholder", S("e"), S("u"), R, S("e"), NULL },
        { "a literal star", S("e"), S("u"), R, S("a*b"), "escape" },
        { "a literal star is not a pattern", S("e"), S("u"), R, S("axb"), NULL },
        { "a placeholder before a literal brace", S("e"), S("u"), R, S("e{user}"), "escape" },

        { "the shortest of several prefixes", S("n"), NO_NAME, R, S("axe"), "nested" },
        { "the longest prefix does not match, a shorter one does", S("n"), NO_NAME, R, S("abcdx"),
          "nested" },
        { "all prefixes match, the longest grants no such access", S("n"), NO_NAME, W, S("abcd"),
          "nested write" },
        { "all prefixes match, none grants writing", S("n"), NO_NAME, W, S("abcde"), NULL },
        { "a shorter prefix grants writing", S("n"), NO_NAME, W, S("ab"), "nested write" },
        { "sorts after all prefixes", S("n"), NO_NAME, R, S("zzz"), NULL },
        { "sorts before all prefixes", S("n"), NO_NAME, R, S("A"), NULL },
};

static struct policy *all_rules(bool allows_unverified) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        for (size_t i = 0; i < N_ROWS(rules); i++)
                add_rule(policy, &rules[i]);
        cr_assert_eq(policy_compile(policy, allows_unverified), POLICY_DONE);
        return policy;
}

static const struct policy_keys *decide(const struct policy *policy, struct request_origin origin,
                                        enum access access, struct slice key) {
        uint64_t budget = POLICY_STEPS_MAX;

        return policy_decide(policy, &origin, access, key, &budget);
}

Test(policy, grants_exactly_what_its_rules_grant) {
        struct policy *policy = all_rules(false);

        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin origin = { decisions[i].client, decisions[i].user, true };
                const struct policy_keys *keys =
                        decide(policy, origin, decisions[i].access, decisions[i].key);

                cr_expect_eq(!keys, !decisions[i].rule, ROW(decisions, i));
                if (keys && decisions[i].rule)
                        cr_expect(slice_equal(policy_location(policy, keys).rule,
                                              slice_from_string(decisions[i].rule)),
                                  ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, denies_unverified_clients) {
        struct policy *policy = all_rules(false);

        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin origin = { decisions[i].client, decisions[i].user, false };

                cr_expect_null(decide(policy, origin, decisions[i].access, decisions[i].key),
                               ROW(decisions, i));
                cr_expect_not(policy_grants_any(policy, &origin, ACCESS_READ), ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, applies_to_unverified_clients_if_it_allows_them) {
        struct policy *policy = all_rules(true);

        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin origin = { decisions[i].client, decisions[i].user, false };

                cr_expect_eq(!decide(policy, origin, decisions[i].access, decisions[i].key),
                             !decisions[i].rule, ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, without_rules_denies_everything) {
        struct request_origin origin = { S("c"), S("u"), true };
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        cr_assert_eq(policy_compile(policy, true), POLICY_DONE);
        cr_expect_null(decide(policy, origin, ACCESS_READ, S("k")));
        cr_expect_not(policy_grants_any(policy, &origin, ACCESS_READ));
        policy_free(policy);
}

Test(policy, finds_whether_a_client_is_granted_any_key) {
        struct policy *policy;
        const struct rule writer = { "w", W, { USER("w") }, { PATTERN("*") } };
        const struct rule reader = { "r", R, { CLIENT("r") }, { STRING("x") } };

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        add_rule(policy, &writer);
        add_rule(policy, &reader);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("r"), NO_NAME, true }, ACCESS_READ));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("r"), NO_NAME, true }, ACCESS_WRITE));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("x"), S("w"), true }, ACCESS_READ));
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("x"), S("w"), true }, ACCESS_WRITE));
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("r"), S("w"), true }, ACCESS_WRITE));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("r"), NO_NAME, false }, ACCESS_READ));
        policy_free(policy);
}

Test(policy, names_the_first_of_several_granting_lines) {
        struct request_origin origin = { S("c"), NO_NAME, true };
        struct policy *policy;
        uint64_t budget = 100;
        struct policy_location reason;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        for (unsigned int line = 3; line < 6; line++) {
                cr_assert_eq(policy_add_rule(policy, line == 3 ? S("first") : S("other")), POLICY_DONE);
                policy_set_access(policy, ACCESS_READ);
                cr_assert_eq(policy_add_principal(policy, POLICY_CLIENT, S("c")), POLICY_DONE);
                cr_assert_eq(policy_add_keys(policy, POLICY_PATTERN, S("k*"), line), POLICY_DONE);
        }
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        reason = policy_location(policy, policy_decide(policy, &origin, ACCESS_READ, S("key"), &budget));
        cr_expect(slice_equal(reason.rule, S("first")));
        cr_expect_eq(reason.line, 3);
        policy_free(policy);
}

/* A key of 1 MB and a pattern that backtracks at every character. */
Test(policy, denies_access_when_matching_takes_too_long) {
        static const struct rule slow = { "slow", R, { ANYONE }, { PATTERN("*aaaaaaaaaaaaaaaaaaab") } };
        struct request_origin origin = { S("c"), NO_NAME, true };
        size_t length = 1 << 20;
        uint8_t *text = malloc(length);
        uint64_t budget = UINT64_MAX;
        struct policy *policy;

        cr_assert_not_null(text);
        memset(text, 'a', length - 1);
        text[length - 1] = 'b';
        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        add_rule(policy, &slow);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        cr_expect_not_null(
                decide(policy, origin, ACCESS_READ, (struct slice){ text + length - 1000, 1000 }));
        cr_expect_null(policy_decide(policy, &origin, ACCESS_READ, (struct slice){ text, length }, &budget));
        cr_expect_eq(UINT64_MAX - budget, POLICY_STEPS_MAX);

        budget = 50;
        cr_expect_null(policy_decide(policy, &origin, ACCESS_READ,
                                     (struct slice){ text + length - 1000, 1000 }, &budget));
        cr_expect_eq(budget, 0);
        policy_free(policy);
        free(text);
}
