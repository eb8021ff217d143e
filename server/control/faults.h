/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/selection.h"

/*
 * The faults of a test double. A rule has an action, the requests that it applies to, a number of times, and
 * a probability. Only the first rule that applies takes effect. Probability uses the seed of the rule: the
 * same rules and requests give the same faults.
 */

enum fault_action {
        /* actions on requests */
        FAULT_DELAY,             /* executed; the answer comes later, by the test clock */
        FAULT_NO_ANSWER,         /* executed, not answered */
        FAULT_ANSWER_TWICE,      /* executed once */
        FAULT_ERROR,             /* not executed; answered with the given error text */
        FAULT_QUOTA,             /* not executed; answered as if the store were full */
        FAULT_WRONG_CORRELATION, /* executed; the answer has other Correlation Data */
        FAULT_MALFORMED,         /* executed; the answer's payload is truncated */
        FAULT_DISCONNECT,        /* executed; instead of an answer the client's connection is closed */

        /* actions on notifications */
        FAULT_DROP_NOTIFICATION,
        FAULT_NOTIFY_TWICE,
        N_FAULT_ACTIONS,
};

struct fault {
        struct fault *next;
        uint64_t number;
        enum fault_action action;
        int64_t delay_ms;
        struct buf text; /* error text */
        struct selection selection;
        uint32_t chance; /* out of FAULT_CERTAIN */
        uint64_t seed, random;
        bool has_count;
        uint64_t n_remaining; /* with has_count: how many times the rule still applies */
        uint64_t n_strikes;
};

#define FAULT_CERTAIN UINT32_C(1000000000)
#define FAULTS_MAX    100

struct faults {
        struct fault *first;
        size_t n;
        uint64_t last_number;
};

/* Remove all rules. Also initializes. */
void faults_clear(struct faults *faults);

/*
 * Add the rule that the words describe:
 *
 *     ACTION [ARGUMENT] [client ID] [verb VERB] [key PATTERN] [count N] [probability P] [seed N]
 *
 * The argument of delay is a duration, that of error a text. Rules for notifications have no verb. Returns
 * 0, -ENOMEM, -ENOSPC for more than FAULTS_MAX rules, or -EINVAL with *ret_fault, which says what was
 * expected.
 */
int faults_add(struct faults *faults, const struct slice *words, size_t n_words, uint64_t *ret_number,
               const char **ret_fault);

/* Append a line of JSON for each rule. */
void faults_write(const struct faults *faults, struct buf *lines);

const char *fault_action_name(enum fault_action action);

/*
 * Return the rule that applies, NULL: none, and count it. Borrowed until the next call that changes the
 * rules.
 */
const struct fault *faults_strike_request(struct faults *faults, struct slice client, enum verb verb,
                                          struct slice key);
const struct fault *faults_strike_notification(struct faults *faults, struct slice client, struct slice key);
