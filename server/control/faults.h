/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "control/selection.h"

/*
 * What a test double is to do wrong: rules, each with what it does, to whom, how often and how surely. The first rule that
 * strikes is the only one. Same rules, same requests, same faults: chance comes from the rule's seed.
 */

enum fault_action {
        /* of requests */
        FAULT_DELAY,             /* executed; the answer comes later, by the test clock */
        FAULT_NO_ANSWER,         /* executed, not answered */
        FAULT_ANSWER_TWICE,      /* executed once */
        FAULT_ERROR,             /* not executed; answered with any error text */
        FAULT_QUOTA,             /* not executed; answered as if the store were full */
        FAULT_WRONG_CORRELATION, /* executed; the answer bears other Correlation Data */
        FAULT_MALFORMED,         /* executed; the answer's payload is cut */
        FAULT_DISCONNECT,        /* executed; the client's connection ends in the answer's place */

        /* of notifications */
        FAULT_DROP_NOTIFICATION,
        FAULT_NOTIFY_TWICE,
        N_FAULT_ACTIONS,
};

struct fault {
        struct fault *next;
        uint64_t number;
        enum fault_action action;
        int64_t delay_ms;
        struct buf text; /* of an error */
        struct selection selection;
        uint32_t chance; /* of FAULT_CERTAIN */
        uint64_t seed, random;
        bool has_count;
        uint64_t n_remaining; /* has_count: how often it still strikes */
        uint64_t n_strikes;
};

#define FAULT_CERTAIN UINT32_C(1000000000)
#define FAULTS_MAX    100

struct faults {
        struct fault *first;
        size_t n;
        uint64_t last_number;
};

/* Also for starting anew. */
void faults_clear(struct faults *faults);

/*
 * Adds the rule that the words say:
 *
 *     ACTION [ARGUMENT] [client ID] [verb VERB] [key PATTERN] [count N] [probability P] [seed N]
 *
 * delay has a duration as its argument, error a text. Notifications have no verb. Returns 0, -ENOMEM, -ENOSPC past
 * FAULTS_MAX, or -EINVAL with *ret_fault, which says what was expected.
 */
int faults_add(struct faults *faults, const struct slice *words, size_t n_words, uint64_t *ret_number,
               const char **ret_fault);

/* Appends a line of JSON for each. */
void faults_write(const struct faults *faults, struct buf *lines);

const char *fault_action_name(enum fault_action action);

/* Those of the rule that strikes, NULL: none. Borrowed until the next call that changes the rules. */
const struct fault *faults_strike_request(struct faults *faults, struct slice client, enum verb verb,
                                          struct slice key);
const struct fault *faults_strike_notification(struct faults *faults, struct slice client, struct slice key);
