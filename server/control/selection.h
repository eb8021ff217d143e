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

/*
 * Set `client ID`, `verb VERB` or `key PATTERN`. Returns 1; 0 if the name is none of these; -ENOMEM; or
 * -EINVAL with *ret_fault for an unknown verb, an empty pattern, or a name that was set before.
 */
int selection_set(struct selection *selection, struct slice name, struct slice value,
                  const char **ret_fault);

/* verb N_VERBS: unknown. */
bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key);
