/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"
#include "engine/request.h"

/* Which requests are meant: by the client that asks, the verb, and a pattern for the key. All zeros is any. */
struct selection {
        bool has_client, has_key, has_verb;
        struct buf client;
        struct buf key; /* a glob */
        enum verb verb;
};

void selection_deinit(struct selection *selection);

/*
 * Takes `client ID`, `verb VERB` or `key PATTERN`. Returns 1; 0 where the name is none of these; -ENOMEM; or -EINVAL with
 * *ret_fault for a verb that there is not, an empty pattern, or what was said before.
 */
int selection_set(struct selection *selection, struct slice name, struct slice value,
                  const char **ret_fault);

/* verb N_VERBS: it is not known. */
bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key);
