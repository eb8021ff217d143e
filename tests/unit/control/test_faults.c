/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "control/faults.h"
#include "unit/support/table.h"

#define S           SLICE_LITERAL
#define N_WORDS_MAX 20

/* Add the rule with these words, separated by blanks. Returns the result of fault_rules_add(). */
static int add(struct fault_rules *faults, const char *text) {
        struct slice words[N_WORDS_MAX], rest = slice_from_string(text);
        const char *fault = NULL;
        size_t n_words = 0;
        int r;

        while (rest.length > 0)
                words[n_words++] = slice_split(rest, ' ', &rest);
        r = fault_rules_add(faults, words, n_words, &fault);
        cr_expect_eq(r == -EINVAL, fault != NULL);
        return r;
}

static const struct fault_rule *ask(struct fault_rules *faults, const char *client, enum verb verb,
                                    const char *key) {
        return fault_rules_apply(faults, false, slice_from_string(client), verb, slice_from_string(key));
}

static const char *const right[] = {
        "delay 500ms",
        "delay 36500d",
        "delay 1h client c",
        "no-answer verb SET",
        "answer-twice key a*",
        "error boom count 1",
        "kick",
        "drop-notification client c key k",
        "notify-twice count 18446744073709551615",
        "delay 1ms client c verb SCAN key k count 1",
};

Test(faults, accepts_every_action_and_option) {
        struct fault_rules faults = { 0 };

        for (size_t i = 0; i < N_ROWS(right); i++)
                cr_expect_eq(add(&faults, right[i]), 0, "%s", right[i]);
        cr_expect_eq(faults.n, N_ROWS(right));
        fault_rules_clear(&faults);
}

static const char *const wrong[] = {
        "",
        "explode",
        "DELAY 1s",
        "delay",
        "delay soon",
        "delay 0ms",
        "delay -1s",
        "delay 36501d",
        "error",
        "error a\nb",
        "error a\rb",
        "quota count 0",
        "quota count",
        "quota count x",
        "quota count -1",
        "quota verb MOVE",
        "quota verb SET verb SET",
        "quota probability 0.5",
        "quota colour red",
        "drop-notification verb SET",
        "notify-twice verb DEL",
};

Test(faults, rejects_invalid_rules_with_a_reason) {
        struct fault_rules faults = { 0 };

        for (size_t i = 0; i < N_ROWS(wrong); i++)
                cr_expect_eq(add(&faults, wrong[i]), -EINVAL, "%s", wrong[i]);
        cr_expect_null(faults.first);
}

Test(faults, number_of_rules_is_limited) {
        struct fault_rules faults = { 0 };

        for (size_t i = 0; i < FAULT_RULES_MAX; i++)
                cr_assert_eq(add(&faults, "quota"), 0);
        cr_expect_eq(add(&faults, "quota"), -ENOSPC);
        fault_rules_clear(&faults);
        cr_expect_eq(add(&faults, "quota"), 0);
        fault_rules_clear(&faults);
}

Test(faults, count_limits_applications) {
        struct fault_rules faults = { 0 };

        cr_assert_eq(add(&faults, "quota count 2"), 0);
        cr_expect_not_null(ask(&faults, "c", VERB_SET, "k"));
        cr_expect_not_null(ask(&faults, "c", VERB_SET, "k"));
        cr_expect_null(ask(&faults, "c", VERB_SET, "k"));
        fault_rules_clear(&faults);
}

Test(faults, only_the_first_matching_rule_applies) {
        struct fault_rules faults = { 0 };

        cr_assert_eq(add(&faults, "quota count 1 key a"), 0);
        cr_assert_eq(add(&faults, "no-answer"), 0);
        cr_expect_eq(ask(&faults, "c", VERB_SET, "b")->action, FAULT_NO_REPLY);
        cr_expect_eq(ask(&faults, "c", VERB_SET, "a")->action, FAULT_QUOTA);
        cr_expect_eq(ask(&faults, "c", VERB_SET, "a")->action, FAULT_NO_REPLY);
        fault_rules_clear(&faults);
}

Test(faults, request_and_notification_rules_are_separate) {
        struct fault_rules faults = { 0 };

        cr_assert_eq(add(&faults, "drop-notification"), 0);
        cr_expect_null(ask(&faults, "c", VERB_SET, "k"));
        cr_expect_eq(fault_rules_apply(&faults, true, S("c"), VERB_UNKNOWN, S("k"))->action,
                     FAULT_DROP_NOTIFICATION);
        fault_rules_clear(&faults);

        cr_assert_eq(add(&faults, "no-answer"), 0);
        cr_expect_null(fault_rules_apply(&faults, true, S("c"), VERB_UNKNOWN, S("k")));
        fault_rules_clear(&faults);
}

Test(faults, no_pattern_matches_after_too_many_steps) {
        static char key[5001], pattern[2001], rule[2020];
        struct fault_rules faults = { 0 };

        memset(key, 'a', sizeof(key) - 1);
        memset(pattern, 'a', sizeof(pattern) - 1);
        pattern[0] = '*';
        pattern[sizeof(pattern) - 2] = 'b';
        snprintf(rule, sizeof(rule), "no-answer key %s", pattern);
        cr_assert_eq(add(&faults, rule), 0);
        cr_assert_eq(add(&faults, "quota key a*"), 0);
        cr_expect_null(ask(&faults, "c", VERB_SET, key));
        cr_expect_eq(ask(&faults, "c", VERB_SET, "aa")->action, FAULT_QUOTA);
        cr_assert_eq(add(&faults, "error boom"), 0);
        cr_expect_eq(ask(&faults, "c", VERB_SET, key)->action, FAULT_ERROR);
        fault_rules_clear(&faults);
}
