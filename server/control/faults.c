/* SPDX-License-Identifier: Apache-2.0 */

#include "control/faults.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "control/test_clock.h"

static const char *const action_names[N_FAULT_ACTIONS] = {
        [FAULT_DELAY] = "delay",
        [FAULT_NO_REPLY] = "no-answer",
        [FAULT_REPLY_TWICE] = "answer-twice",
        [FAULT_ERROR] = "error",
        [FAULT_QUOTA] = "quota",
        [FAULT_KICK] = "kick",
        [FAULT_DROP_NOTIFICATION] = "drop-notification",
        [FAULT_NOTIFY_TWICE] = "notify-twice",
};

static bool is_for_notifications(enum fault_action action) {
        return action >= FAULT_DROP_NOTIFICATION;
}

const char *fault_action_name(enum fault_action action) {
        return action_names[action];
}

static void rule_free(struct fault_rule *rule) {
        buf_deinit(&rule->text);
        selection_deinit(&rule->selection);
        free(rule);
}

CLEANUP_FUNCTION(cleanup_rule, struct fault_rule *, rule_free)

void fault_rules_clear(struct fault_rules *rules) {
        while (rules->first) {
                struct fault_rule *next = rules->first->next;

                rule_free(rules->first);
                rules->first = next;
        }
        *rules = (struct fault_rules){ 0 };
}

static bool is_within_selection(const struct selection *inner, const struct selection *selection,
                                uint64_t *budget) {
        return (!selection->has_client || inner->has_client) && (!selection->has_key || inner->has_key) &&
               selection_matches(selection, buf_slice(&inner->client), inner->verb, buf_slice(&inner->key),
                                 budget);
}

void fault_rules_remove(struct fault_rules *rules, const struct selection *selection, uint64_t *budget) {
        for (struct fault_rule **place = &rules->first; *place;) {
                struct fault_rule *rule = *place;

                if (!is_within_selection(&rule->selection, selection, budget)) {
                        place = &rule->next;
                        continue;
                }
                *place = rule->next;
                rules->n--;
                rule_free(rule);
        }
}

/* Returns the number of words read, or -errno. */
static int read_action(struct fault_rule *rule, const struct slice *words, size_t n_words,
                       const char **ret_problem) {
        rule->action = N_FAULT_ACTIONS;
        for (int i = 0; n_words > 0 && i < N_FAULT_ACTIONS; i++)
                if (slice_equal_string(words[0], action_names[i]))
                        rule->action = (enum fault_action)i;

        switch (rule->action) {
        case N_FAULT_ACTIONS:
                return refuse_words(ret_problem, "delay, no-answer, answer-twice, error, quota, kick, "
                                                 "drop-notification or notify-twice was expected");
        case FAULT_DELAY:
                if (n_words < 2 || parse_duration(words[1], &rule->delay_ms) < 0 || rule->delay_ms == 0 ||
                    rule->delay_ms >
                            TEST_CLOCK_ADVANCE_MAX_MS) /* so the sum with a clock reading cannot overflow */
                        return refuse_words(
                                ret_problem,
                                "a duration, such as 500ms or 10s, was expected after \"delay\"");
                return 2;
        case FAULT_ERROR:
                if (n_words < 2 || words[1].length == 0 || memchr(words[1].data, '\r', words[1].length) ||
                    memchr(words[1].data, '\n', words[1].length))
                        return refuse_words(ret_problem, "a text on one line was expected after \"error\"");
                buf_append_slice(&rule->text, words[1]);
                return buf_failed(&rule->text) ? -ENOMEM : 2;
        default:
                return 1;
        }
}

static int read_rule(struct fault_rule *rule, const struct slice *words, size_t n_words,
                     const char **ret_problem) {
        static const struct query_form of_requests = { QUERY_CLIENT | QUERY_VERB | QUERY_KEY | QUERY_COUNT,
                                                       "client, verb, key or count was expected" };
        static const struct query_form of_notifications = { QUERY_CLIENT | QUERY_KEY | QUERY_COUNT,
                                                            "client, key or count was expected" };
        int n_taken = read_action(rule, words, n_words, ret_problem);
        struct query query = { 0 };
        int r;

        if (n_taken < 0)
                return n_taken;
        r = query_read(&query, is_for_notifications(rule->action) ? &of_notifications : &of_requests,
                       words + n_taken, n_words - (size_t)n_taken, ret_problem);
        rule->selection = query.selection; /* the rule owns it */
        rule->has_count = query.given & QUERY_COUNT;
        rule->n_remaining = query.count;
        return r;
}

int fault_rules_add(struct fault_rules *rules, const struct slice *words, size_t n_words,
                    const char **ret_problem) {
        CLEANUP(cleanup_rule) struct fault_rule *rule = NULL;
        struct fault_rule **end = &rules->first;
        int r;

        if (rules->n == FAULT_RULES_MAX)
                return -ENOSPC;
        rule = calloc(1, sizeof(*rule));
        if (!rule)
                return -ENOMEM;

        r = read_rule(rule, words, n_words, ret_problem);
        if (r < 0)
                return r;

        while (*end)
                end = &(*end)->next;
        *end = take_ptr(&rule);
        rules->n++;
        return 0;
}

static bool rule_applies(struct fault_rule *rule, struct slice client, enum verb verb, struct slice key,
                         uint64_t *budget) {
        if ((rule->has_count && rule->n_remaining == 0) ||
            !selection_matches(&rule->selection, client, verb, key, budget))
                return false;
        if (rule->has_count)
                rule->n_remaining--;
        return true;
}

const struct fault_rule *fault_rules_apply(struct fault_rules *rules, bool is_notification,
                                           struct slice client, enum verb verb, struct slice key) {
        uint64_t budget = SELECTION_STEPS_MAX;

        for (struct fault_rule *rule = rules->first; rule; rule = rule->next)
                if (is_for_notifications(rule->action) == is_notification &&
                    rule_applies(rule, client, verb, key, &budget))
                        return rule;
        return NULL;
}
