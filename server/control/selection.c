/* SPDX-License-Identifier: Apache-2.0 */

#include "control/selection.h"

#include <errno.h>

#include "base/glob.h"

void selection_deinit(struct selection *selection) {
        buf_deinit(&selection->client);
        buf_deinit(&selection->key);
        *selection = (struct selection){ 0 };
}

int refuse_words(const char **ret_problem, const char *problem) {
        *ret_problem = problem;
        return -EINVAL;
}

static int copy_value(struct buf *buf, struct slice value) {
        buf_append_slice(buf, value);
        return buf_failed(buf) ? -ENOMEM : 1;
}

int selection_set(struct selection *selection, struct slice name, struct slice value,
                  const char **ret_problem) {
        if (slice_equal(name, SLICE_LITERAL("client"))) {
                if (selection->has_client)
                        return refuse_words(ret_problem, "the client is given twice");
                selection->has_client = true;
                return copy_value(&selection->client, value);
        }
        if (slice_equal(name, SLICE_LITERAL("key"))) {
                if (selection->has_key)
                        return refuse_words(ret_problem, "the key is given twice");
                if (value.length == 0)
                        return refuse_words(ret_problem, "a pattern was expected after \"key\"");
                if (!slice_is_utf8(value) || glob_check(value) != GLOB_VALID)
                        return refuse_words(ret_problem, "the pattern after \"key\" is invalid");
                selection->has_key = true;
                return copy_value(&selection->key, value);
        }
        if (slice_equal(name, SLICE_LITERAL("verb"))) {
                if (selection->has_verb)
                        return refuse_words(ret_problem, "the verb is given twice");
                if (!verb_from_text(value, &selection->verb))
                        return refuse_words(ret_problem, VERBS_EXPECTED " after \"verb\"");
                selection->has_verb = true;
                return 1;
        }
        return 0;
}

bool selection_matches(const struct selection *selection, struct slice client, enum verb verb,
                       struct slice key, uint64_t *budget) {
        return (!selection->has_client || slice_equal(buf_slice(&selection->client), client)) &&
               (!selection->has_verb || selection->verb == verb) &&
               (!selection->has_key || glob_match(buf_slice(&selection->key), key, budget));
}
