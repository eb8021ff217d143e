/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy.h"

/* A policy as the list of its file's lines. Each decision goes through all lines. */

#define MODEL_LINES_MAX 400

struct model_line {
        struct slice name, value; /* a section has its name, and no value */
        unsigned int number;
        bool is_valid; /* by itself, without the other lines */
};

struct policy_model {
        struct model_line lines[MODEL_LINES_MAX]; /* without comments and empty lines */
        size_t n_lines;
        bool allows_unverified;
};

/* The text is borrowed. False: it has too many lines. */
bool policy_model_read(struct policy_model *model, struct slice text);

/* Return whether each line of the file is valid, and the file as a whole. */
bool policy_model_is_valid(const struct policy_model *model);

/* The following functions require a valid policy. */

/* Return whether this line of keys grants it; line 0: any line. */
bool policy_model_grants(const struct policy_model *model, const struct request_origin *origin,
                         enum access access, struct slice key, unsigned int number);

bool policy_model_grants_any(const struct policy_model *model, const struct request_origin *origin,
                             enum access access);

/* Return the name of the line's rule. */
struct slice policy_model_rule(const struct policy_model *model, unsigned int number);
