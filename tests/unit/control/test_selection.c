/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/array.h"
#include "control/selection.h"

#define S SLICE_LITERAL

static bool matches(const struct selection *selection, const char *client, enum verb verb, const char *key) {
        uint64_t budget = SELECTION_STEPS_MAX;

        return selection_matches(selection, slice_from_string(client), verb, slice_from_string(key),
                                 &budget);
}

Test(selection, matches_everything_by_default) {
        struct selection selection = { 0 };

        cr_expect(matches(&selection, "c", VERB_SET, "k"));
        cr_expect(matches(&selection, NULL, VERB_UNKNOWN, NULL));
}

static const struct query_form all_options = {
        QUERY_CLIENT | QUERY_KEY | QUERY_VERB | QUERY_AFTER | QUERY_COUNT | QUERY_TIMEOUT, "expected options"
};
static const struct query_form of_clients = { QUERY_CLIENT, "expected client" };

#define READ(query, form, ret_problem, ...)                                                                 \
        query_read(query, form, (const struct slice[]){ __VA_ARGS__ },                                      \
                   ARRAY_LENGTH(((const struct slice[]){ __VA_ARGS__ })), ret_problem)

Test(selection, all_conditions_must_match) {
        struct query query = { 0 };
        const struct selection *selection = &query.selection;
        const char *problem;

        cr_assert_eq(READ(&query, &all_options, &problem, S("client"), S("c"), S("verb"), S("VDEL"),
                          S("key"), S("lock/*")),
                     0);

        cr_expect(matches(selection, "c", VERB_VDEL, "lock/1"));
        cr_expect_not(matches(selection, "d", VERB_VDEL, "lock/1"));
        cr_expect_not(matches(selection, NULL, VERB_VDEL, "lock/1"));
        cr_expect_not(matches(selection, "c", VERB_DEL, "lock/1"));
        cr_expect_not(matches(selection, "c", VERB_UNKNOWN, "lock/1"));
        cr_expect_not(matches(selection, "c", VERB_VDEL, "lock"));
        query_deinit(&query);
}

Test(selection, matches_requests_of_unknown_clients) {
        struct query query = { 0 };
        const char *problem;

        cr_assert_eq(READ(&query, &of_clients, &problem, S("client"), S("")), 0);
        cr_expect(matches(&query.selection, NULL, VERB_SET, "k"));
        cr_expect_not(matches(&query.selection, "c", VERB_SET, "k"));
        query_deinit(&query);
}

Test(query, reads_all_options) {
        struct query query = { .count = 1, .timeout_ms = 5 };
        const char *problem;

        cr_assert_eq(query_read(&query, &all_options, NULL, 0, &problem), 0);
        cr_expect_eq(query.given, 0);
        cr_expect_eq(query.count, 1);
        cr_assert_eq(READ(&query, &all_options, &problem, S("after"), S("0"), S("count"), S("3"),
                          S("timeout"), S("10m")),
                     0);
        cr_expect_eq(query.given, QUERY_AFTER | QUERY_COUNT | QUERY_TIMEOUT);
        cr_expect_eq(query.after, 0);
        cr_expect_eq(query.count, 3);
        cr_expect_eq(query.timeout_ms, 600000);
        query_deinit(&query);
}

static const struct {
        const struct query_form *form;
        size_t n_words;
        struct slice words[4];
        const char *problem;
} wrong[] = {
        { &all_options, 2, { S("verb"), S("set") }, VERBS_EXPECTED " after \"verb\"" },
        { &all_options, 2, { S("key"), S("") }, "a valid pattern was expected after \"key\"" },
        { &all_options, 2, { S("key"), S("[") }, "a valid pattern was expected after \"key\"" },
        { &all_options, 2, { S("key"), S("\xFF") }, "a valid pattern was expected after \"key\"" },
        { &all_options, 2, { S("after"), S("x") }, "a number was expected after \"after\"" },
        { &all_options, 2, { S("count"), S("0") }, "a positive number was expected after \"count\"" },
        { &all_options,
          2,
          { S("timeout"), S("601s") },
          "a duration from 1ms to 10m was expected after \"timeout\"" },
        { &all_options,
          2,
          { S("timeout"), S("0s") },
          "a duration from 1ms to 10m was expected after \"timeout\"" },
        { &all_options, 1, { S("client") }, "the last word has no value" },
        { &all_options, 4, { S("client"), S("a"), S("client"), S("b") }, "an option is given twice" },
        { &all_options, 4, { S("after"), S("1"), S("after"), S("2") }, "an option is given twice" },
        { &all_options, 2, { S("word"), S("x") }, "expected options" },
        { &of_clients, 2, { S("key"), S("k") }, "expected client" },
};

Test(query, names_the_problem) {
        for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
                struct query query = { 0 };
                const char *problem = NULL;

                cr_expect_eq(query_read(&query, wrong[i].form, wrong[i].words, wrong[i].n_words, &problem),
                             -EINVAL, "%zu", i);
                cr_expect_str_eq(problem, wrong[i].problem, "%zu", i);
                query_deinit(&query);
        }
}
