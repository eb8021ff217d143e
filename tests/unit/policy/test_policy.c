/* SPDX-License-Identifier: Apache-2.0 */

/* What a policy grants. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/policy_build.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL
#define NOBODY                                                                                              \
        { NULL, 0 }
#define R  ACCESS_READ
#define W  ACCESS_WRITE
#define RW ACCESS_READWRITE

struct holder {
        enum policy_holder_kind kind;
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
                cr_assert_eq(policy_add_holder(policy, rule->holders[i].kind,
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

/* The rules of all decisions below. */
static const struct rule rules[] = {
        { "colors", R, { ANYONE }, { PATTERN("colors/*") } },
        { "painter", W, { CLIENT("painter") }, { PATTERN("colors/[a-f]*"), STRING("colors/*") } },
        { "own", RW, { ANYONE }, { PATTERN("own/{client}/*"), STRING("home/{client}") } },
        { "users", RW, { ANYONE }, { PATTERN("users/{user}/*"), PATTERN("{user}-{client}-?") } },
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
        { "anyone may read", S("c"), NOBODY, R, S("colors/red"), "colors" },
        { "a star takes nothing, too", S("c"), NOBODY, R, S("colors/"), "colors" },
        { "not what only begins like it", S("c"), NOBODY, R, S("colors"), NULL },
        { "not the end of another key", S("c"), NOBODY, R, S("xcolors/red"), NULL },
        { "reading is not writing", S("c"), NOBODY, W, S("colors/red"), NULL },
        { "nobody is anyone", NOBODY, NOBODY, R, S("colors/red"), "colors" },
        { "a client by its id", S("painter"), NOBODY, W, S("colors/blue"), "painter" },
        { "outside the class", S("painter"), NOBODY, W, S("colors/red"), NULL },
        { "a string is not a pattern", S("painter"), NOBODY, W, S("colors/*"), "painter" },
        { "another client", S("painter2"), NOBODY, W, S("colors/blue"), NULL },
        { "the beginning of its id", S("painte"), NOBODY, W, S("colors/blue"), NULL },
        { "a user of that name is not that client", S("c"), S("painter"), W, S("colors/blue"), NULL },

        { "one's own", S("c1"), NOBODY, W, S("own/c1/x"), "own" },
        { "another's", S("c1"), NOBODY, W, S("own/c2/x"), NULL },
        { "one that begins alike", S("c1"), NOBODY, W, S("own/c12/x"), NULL },
        { "one's own string", S("c1"), NOBODY, W, S("home/c1"), "own" },
        { "more than one's own string", S("c1"), NOBODY, W, S("home/c1/x"), NULL },
        { "an id of a star", S("*"), NOBODY, W, S("own/victim/x"), NULL },
        { "an id of a star, its own", S("*"), NOBODY, W, S("own/*/x"), "own" },
        { "an id of a question mark", S("??????"), NOBODY, W, S("own/victim/x"), NULL },
        { "an id of a class", S("[a-z]"), NOBODY, W, S("own/v/x"), NULL },
        { "an id of a class, its own", S("[a-z]"), NOBODY, W, S("own/[a-z]/x"), "own" },
        { "an id that opens a class", S("["), NOBODY, W, S("own/v]/x"), NULL },
        { "an id that opens a class, its own", S("["), NOBODY, W, S("own/[/x"), "own" },
        { "an id with a star", S("v*"), NOBODY, W, S("home/victim"), NULL },
        { "an id that is a placeholder", S("{user}"), S("u"), W, S("own/u/x"), NULL },
        { "no id", NOBODY, S("u"), W, S("own//x"), NULL },
        { "no id, a string", NOBODY, S("u"), W, S("home/"), NULL },
        { "an id that is not UTF-8", S("\xFF"), NOBODY, W, S("own/\xFF/x"), NULL },
        { "an id of several bytes", S("\xC3\xA4"), NOBODY, W, S("own/\xC3\xA4/x"), "own" },

        { "a user's own", S("c"), S("u"), R, S("users/u/x"), "users" },
        { "without a user", S("c"), NOBODY, R, S("users//x"), NULL },
        { "a client id is no user", S("u"), NOBODY, R, S("users/u/x"), NULL },
        { "both", S("c"), S("u"), R, S("u-c-1"), "users" },
        { "both, the other way", S("c"), S("u"), R, S("c-u-1"), NULL },
        { "two that together are others", S("c-d"), S("u"), R, S("u-c-d-1"), "users" },
        { "a user of a star", S("c"), S("*"), R, S("users/u/x"), NULL },

        { "a class", S("c"), S("gateway"), W, S("number7"), "gateway" },
        { "outside a class", S("c"), S("gateway"), W, S("numberx"), NULL },
        { "two for one", S("c"), S("gateway"), W, S("number77"), NULL },
        { "any one", S("gate"), NOBODY, R, S("char1"), "gateway" },
        { "any one of several bytes", S("gate"), NOBODY, R, S("char\xC3\xA4"), "gateway" },
        { "none for any one", S("gate"), NOBODY, R, S("char"), NULL },
        { "neither client nor user", S("gateway"), S("gate"), R, S("char1"), NULL },

        { "bytes", S("b"), NOBODY, R, S("\x00\xFF{client}*"), "binary" },
        { "bytes are no pattern", S("b"), NOBODY, R, S("\x00\xFF{client}x"), NULL },
        { "bytes hold no placeholder", S("b"), NOBODY, R,
          S("\x00\xFF"
            "b*"),
          NULL },
        { "up to a NUL", S("b"), NOBODY, R, S("\x00"), NULL },
        { "behind a character of two bytes", S("b"), NOBODY, R, S("\xC3\xA4x"), "binary" },
        { "what is no character does not follow one", S("b"), NOBODY, R, S("\xC3\xA4\x80"), NULL },
        { "a character", S("b"), NOBODY, R, S("\xC3\xA4"), "binary" },

        { "everything", S("c"), S("admin"), W, S("x"), "admin" },
        { "everything, not UTF-8", S("c"), S("admin"), W, S("\xFF\x00"), "admin" },
        { "everything to read", S("c"), S("reader"), R, S("x"), "reader" },
        { "reading everything is not writing it", S("c"), S("reader"), W, S("x"), NULL },

        { "a literal brace", S("e"), S("u"), R, S("{client}"), "escape" },
        { "a literal brace stands for nobody", S("e"), S("u"), R, S("e"), NULL },
        { "a literal star", S("e"), S("u"), R, S("a*b"), "escape" },
        { "a literal star is none", S("e"), S("u"), R, S("axb"), NULL },
        { "a placeholder before a literal brace", S("e"), S("u"), R, S("e{user}"), "escape" },

        { "the shortest of several beginnings", S("n"), NOBODY, R, S("axe"), "nested" },
        { "the longest beginning does not match, a shorter one does", S("n"), NOBODY, R, S("abcdx"),
          "nested" },
        { "all begin, the longest has no such access", S("n"), NOBODY, W, S("abcd"), "nested write" },
        { "all begin, none of them to write", S("n"), NOBODY, W, S("abcde"), NULL },
        { "a shorter beginning to write", S("n"), NOBODY, W, S("ab"), "nested write" },
        { "after all beginnings", S("n"), NOBODY, R, S("zzz"), NULL },
        { "before all beginnings", S("n"), NOBODY, R, S("A"), NULL },
};

static struct policy *all_rules(bool allows_unverified) {
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        for (size_t i = 0; i < N_ROWS(rules); i++)
                add_rule(policy, &rules[i]);
        cr_assert_eq(policy_compile(policy, allows_unverified), POLICY_DONE);
        return policy;
}

static const struct policy_keys *decide(const struct policy *policy, struct request_origin asker,
                                        enum access access, struct slice key) {
        uint64_t budget = POLICY_STEPS_MAX;

        return policy_decide(policy, &asker, access, key, &budget);
}

Test(policy, grants_what_a_rule_says_and_nothing_else) {
        struct policy *policy = all_rules(false);

        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin asker = { decisions[i].client, decisions[i].user, true };
                const struct policy_keys *keys =
                        decide(policy, asker, decisions[i].access, decisions[i].key);

                cr_expect_eq(!keys, !decisions[i].rule, ROW(decisions, i));
                if (keys && decisions[i].rule)
                        cr_expect(slice_equal(policy_reason(policy, keys).rule,
                                              slice_from_string(decisions[i].rule)),
                                  ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, grants_nothing_to_whom_nobody_vouches_for) {
        struct policy *policy = all_rules(false);

        cr_expect_not(policy_allows_unverified(policy));
        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin asker = { decisions[i].client, decisions[i].user, false };

                cr_expect_null(decide(policy, asker, decisions[i].access, decisions[i].key),
                               ROW(decisions, i));
                cr_expect_not(policy_grants_any(policy, &asker, ACCESS_READ), ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, grants_to_whom_nobody_vouches_for_what_it_says_where_it_allows_that) {
        struct policy *policy = all_rules(true);

        cr_expect(policy_allows_unverified(policy));
        for (size_t i = 0; i < N_ROWS(decisions); i++) {
                struct request_origin asker = { decisions[i].client, decisions[i].user, false };

                cr_expect_eq(!decide(policy, asker, decisions[i].access, decisions[i].key),
                             !decisions[i].rule, ROW(decisions, i));
        }
        policy_free(policy);
}

Test(policy, of_no_rules_grants_nothing) {
        struct request_origin asker = { S("c"), S("u"), true };
        struct policy *policy;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        cr_assert_eq(policy_compile(policy, true), POLICY_DONE);
        cr_expect_null(decide(policy, asker, ACCESS_READ, S("k")));
        cr_expect_not(policy_grants_any(policy, &asker, ACCESS_READ));
        policy_free(policy);
}

Test(policy, knows_to_whom_it_grants_anything) {
        struct policy *policy;
        const struct rule writer = { "w", W, { USER("w") }, { PATTERN("*") } };
        const struct rule reader = { "r", R, { CLIENT("r") }, { STRING("x") } };

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        add_rule(policy, &writer);
        add_rule(policy, &reader);
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("r"), NOBODY, true }, ACCESS_READ));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("r"), NOBODY, true }, ACCESS_WRITE));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("x"), S("w"), true }, ACCESS_READ));
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("x"), S("w"), true }, ACCESS_WRITE));
        cr_expect(policy_grants_any(policy, &(struct request_origin){ S("r"), S("w"), true }, ACCESS_WRITE));
        cr_expect_not(
                policy_grants_any(policy, &(struct request_origin){ S("r"), NOBODY, false }, ACCESS_READ));
        policy_free(policy);
}

Test(policy, says_which_line_decides_the_first_of_several) {
        struct request_origin asker = { S("c"), NOBODY, true };
        struct policy *policy;
        uint64_t budget = 100;
        struct policy_reason reason;

        cr_assert_eq(policy_new(&policy), POLICY_DONE);
        for (unsigned int line = 3; line < 6; line++) {
                cr_assert_eq(policy_add_rule(policy, line == 3 ? S("first") : S("other")), POLICY_DONE);
                policy_set_access(policy, ACCESS_READ);
                cr_assert_eq(policy_add_holder(policy, POLICY_CLIENT, S("c")), POLICY_DONE);
                cr_assert_eq(policy_add_keys(policy, POLICY_PATTERN, S("k*"), line), POLICY_DONE);
        }
        cr_assert_eq(policy_compile(policy, false), POLICY_DONE);
        reason = policy_reason(policy, policy_decide(policy, &asker, ACCESS_READ, S("key"), &budget));
        cr_expect(slice_equal(reason.rule, S("first")));
        cr_expect_eq(reason.line, 3);
        policy_free(policy);
}

static const struct {
        const char *name;
        struct request_origin asker;
        enum access access;
        const char *rules; /* that the lines are of, in order */
} lines[] = {
        { "anyone", { S("c"), NOBODY, true }, R, "colors own own " },
        { "anyone who writes", { S("c"), NOBODY, true }, W, "own own " },
        { "nobody", { NOBODY, NOBODY, true }, R, "colors " },
        { "a client by its id", { S("painter"), NOBODY, true }, W, "painter painter own own " },
        { "a client and a user",
          { S("e"), S("u"), true },
          R,
          "colors own own users users escape escape escape " },
        { "a user", { S("c"), S("admin"), true }, W, "own own users users admin " },
        { "a user of whom no rule speaks", { S("c"), S("painter"), true }, W, "own own users users " },
        { "a rule of both, once",
          { S("gate"), S("gateway"), true },
          W,
          "own own users users gateway gateway " },
        { "whom nobody vouches for", { S("painter"), S("admin"), false }, R, "" },
};

Test(policy, says_which_lines_are_for_whom) {
        struct policy *policy = all_rules(false);

        for (size_t i = 0; i < N_ROWS(lines); i++) {
                const struct policy_keys *keys = NULL;
                struct buf rules_of = { 0 };

                while ((keys = policy_next_keys(policy, &lines[i].asker, lines[i].access, keys))) {
                        buf_append_slice(&rules_of, policy_reason(policy, keys).rule);
                        buf_append_string(&rules_of, " ");
                }
                buf_append(&rules_of, "", 1);
                cr_expect_str_eq((const char *)rules_of.data, lines[i].rules, ROW(lines, i));
                buf_deinit(&rules_of);
        }
        policy_free(policy);
}

/* A key of a megabyte, under a pattern that goes back at every character. */
Test(policy, grants_nothing_where_that_takes_too_long) {
        static const struct rule slow = { "slow", R, { ANYONE }, { PATTERN("*aaaaaaaaaaaaaaaaaaab") } };
        struct request_origin asker = { S("c"), NOBODY, true };
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
        cr_expect_not_null(decide(policy, asker, ACCESS_READ, (struct slice){ text + length - 1000, 1000 }));
        cr_expect_null(policy_decide(policy, &asker, ACCESS_READ, (struct slice){ text, length }, &budget));
        cr_expect_eq(UINT64_MAX - budget, POLICY_STEPS_MAX);

        budget = 50;
        cr_expect_null(policy_decide(policy, &asker, ACCESS_READ,
                                     (struct slice){ text + length - 1000, 1000 }, &budget));
        cr_expect_eq(budget, 0);
        policy_free(policy);
        free(text);
}
