/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/selection.h"

/*
 * The fault rules of a test double. A rule has an action, a selection of requests, and an optional
 * maximum number of applications. Only the first rule that applies takes effect.
 */

enum fault_action {
        /* Actions on requests. Each comment begins with the action's word in the command. */
        FAULT_DELAY,       /* delay: executed; the reply is delayed; the test clock measures the delay */
        FAULT_NO_REPLY,    /* no-answer: executed; no reply */
        FAULT_REPLY_TWICE, /* answer-twice: executed once; the reply is sent twice */
        FAULT_ERROR,       /* error: not executed; the reply is -ERR and the text of the rule */
        FAULT_QUOTA,       /* quota: not executed; the reply is the quota error */
        FAULT_KICK,        /* kick: executed; no reply; the plugin closes the connection of the client */

        /* Actions on notifications. */
        FAULT_DROP_NOTIFICATION, /* drop-notification */
        FAULT_NOTIFY_TWICE,      /* notify-twice */
        N_FAULT_ACTIONS,
};

struct fault_rule {
        struct fault_rule *next;
        enum fault_action action;
        int64_t delay_ms;
        struct buf text; /* of FAULT_ERROR */
        struct selection selection;
        bool has_count;
        uint64_t n_remaining; /* if has_count: number of times that the rule still applies */
};

#define FAULT_RULES_MAX 100

struct fault_rules {
        struct fault_rule *first;
        size_t n;
};

/* Remove all rules. All zeros has no rules. */
void fault_rules_clear(struct fault_rules *rules);

/*
 * Remove the rules for what is selected: those whose client is equal, and whose pattern, taken as a
 * key, matches the pattern of the selection. A rule without a client or pattern is for more than
 * that, so it stays. *budget is decremented as by selection_matches().
 */
void fault_rules_remove(struct fault_rules *rules, const struct selection *selection, uint64_t *budget);

/*
 * Add the rule that the words describe:
 *
 *     ACTION [ARGUMENT] [client ID] [verb VERB] [key PATTERN] [count N]
 *
 * `delay` needs a duration as ARGUMENT, `error` needs a text. Rules for notifications have no verb.
 * Returns 0, -ENOMEM, -ENOSPC for more than FAULT_RULES_MAX rules, or -EINVAL with *ret_problem,
 * which says what was expected.
 */
int fault_rules_add(struct fault_rules *rules, const struct slice *words, size_t n_words,
                    const char **ret_problem);

const char *fault_action_name(enum fault_action action);

/*
 * Return the first rule for requests, or for notifications, that applies, and count it for `count`; NULL
 * if no rule applies. The rule is valid until the rules change. After SELECTION_STEPS_MAX matching steps,
 * no further rule with a pattern applies.
 */
const struct fault_rule *fault_rules_apply(struct fault_rules *rules, bool is_notification,
                                           struct slice client, enum verb verb, struct slice key);
