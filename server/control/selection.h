/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "engine/request.h"

/* Selects requests by client, verb, and a pattern for the key. All zeros selects every request. */
struct selection {
        bool has_client, has_key, has_verb;
        struct buf client;
        struct buf key; /* a glob */
        enum verb verb;
};

void selection_deinit(struct selection *selection);

/* Refuse the words of a command: set *ret_problem to what was expected. Returns -EINVAL. */
int refuse_words(const char **ret_problem, const char *problem);

/*
 * Set one of `client ID`, `verb VERB` and `key PATTERN`. Returns 1; 0 if the name is none of these;
 * -ENOMEM; or -EINVAL with *ret_problem for an unknown verb, an empty pattern, or a second value
 * for a name.
 */
int selection_set(struct selection *selection, struct slice name, struct slice value,
                  const char **ret_problem);

/*
 * Return true if the request is selected. Decrements *budget by the number of matching steps
 * (base/glob.h). When it reaches 0, no pattern matches any more.
 */
bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key, uint64_t *budget);

/*
 * Budget for one request or notification, shared by all its selections: enough for usual patterns
 * and keys of 64 KiB.
 */
#define SELECTION_STEPS_MAX (UINT64_C(1) << 20)
