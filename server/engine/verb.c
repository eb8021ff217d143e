/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/verb.h"

const struct verb_properties verbs[N_VERBS + 1] = {
#define VERB_PROPERTIES(symbol, name, access, min, max, flags, ...)                                         \
        [VERB_##symbol] = { SLICE_LITERAL(#symbol), #name, access, min, max, flags },
        VERBS(VERB_PROPERTIES)
#undef VERB_PROPERTIES
                [VERB_UNKNOWN] = { .label = "unknown" },
};

bool verb_from_text(struct slice text, enum verb *ret_verb) {
        for (enum verb verb = 0; verb < N_VERBS; verb++)
                if (slice_equal(text, verbs[verb].text)) {
                        *ret_verb = verb;
                        return true;
                }
        return false;
}
