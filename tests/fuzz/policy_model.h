/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy.h"

/* A policy file's lines as they stand, gone through one after the other for each question. */

#define MODEL_LINES_MAX 400

struct model_line {
        struct slice name, value; /* of a section: its name and absent */
        unsigned int number;
        bool is_right; /* as far as one can say by the line alone */
};

struct policy_model {
        struct model_line lines[MODEL_LINES_MAX]; /* comments and empty lines are none */
        size_t n_lines;
        bool allows_unverified;
};

/* The text is borrowed. False: it has too many lines. */
bool policy_model_read(struct policy_model *model, struct slice text);

/* Whether each line of the file can be used, and all together. */
bool policy_model_is_right(const struct policy_model *model);

/* The rest is of policies that are right. */

/* Whether this line of keys, 0: any, grants it. */
bool policy_model_grants(const struct policy_model *model, const struct request_origin *asker,
                         enum access access, struct slice key, unsigned int number);

bool policy_model_grants_any(const struct policy_model *model, const struct request_origin *asker,
                             enum access access);

/* The name of the rule that the line is of. */
struct slice policy_model_rule(const struct policy_model *model, unsigned int number);
