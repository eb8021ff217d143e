/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

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

Test(selection, all_conditions_must_match) {
        struct selection selection = { 0 };
        const char *fault;

        cr_assert_eq(selection_set(&selection, S("client"), S("c"), &fault), 1);
        cr_assert_eq(selection_set(&selection, S("verb"), S("VDEL"), &fault), 1);
        cr_assert_eq(selection_set(&selection, S("key"), S("lock/*"), &fault), 1);

        cr_expect(matches(&selection, "c", VERB_VDEL, "lock/1"));
        cr_expect_not(matches(&selection, "d", VERB_VDEL, "lock/1"));
        cr_expect_not(matches(&selection, NULL, VERB_VDEL, "lock/1"));
        cr_expect_not(matches(&selection, "c", VERB_DEL, "lock/1"));
        cr_expect_not(matches(&selection, "c", VERB_UNKNOWN, "lock/1"));
        cr_expect_not(matches(&selection, "c", VERB_VDEL, "lock"));
        selection_deinit(&selection);
}

Test(selection, matches_requests_of_unknown_clients) {
        struct selection selection = { 0 };
        const char *fault;

        cr_assert_eq(selection_set(&selection, S("client"), S(""), &fault), 1);
        cr_expect(matches(&selection, NULL, VERB_SET, "k"));
        cr_expect_not(matches(&selection, "c", VERB_SET, "k"));
        selection_deinit(&selection);
}

Test(selection, ignores_unknown_names) {
        struct selection selection = { 0 };
        const char *fault = NULL;

        cr_expect_eq(selection_set(&selection, S("count"), S("1"), &fault), 0);
        cr_expect_eq(selection_set(&selection, S(""), S(""), &fault), 0);
        cr_expect_null(fault);
}

Test(selection, reports_faults) {
        static const struct {
                struct slice name, value;
        } wrong[] = {
                { S("verb"), S("set") }, { S("verb"), S("") },    { S("key"), S("") },
                { S("key"), S("b") },    { S("client"), S("d") },
        };
        struct selection selection = { 0 };
        const char *fault;

        cr_assert_eq(selection_set(&selection, S("client"), S("c"), &fault), 1);
        for (size_t i = 0; i < 3; i++) {
                fault = NULL;
                cr_expect_eq(selection_set(&selection, wrong[i].name, wrong[i].value, &fault), -EINVAL);
                cr_expect_not_null(fault);
        }
        cr_assert_eq(selection_set(&selection, S("key"), S("a"), &fault), 1);
        for (size_t i = 3; i < 5; i++) {
                fault = NULL;
                cr_expect_eq(selection_set(&selection, wrong[i].name, wrong[i].value, &fault), -EINVAL);
                cr_expect_not_null(fault);
        }
        selection_deinit(&selection);
}
