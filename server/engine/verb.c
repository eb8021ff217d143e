/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/verb.h"

static const struct verb_properties {
        struct slice text;
        const char *label;
        enum access access;
        size_t n_arguments_min, n_arguments_max;
} verbs[N_VERBS] = {
#define VERB_PROPERTIES(symbol, label, access, min, max)                                                    \
        [VERB_##symbol] = { SLICE_LITERAL(#symbol), label, access, min, max },
        VERBS(VERB_PROPERTIES)
#undef VERB_PROPERTIES
};

struct slice verb_text(enum verb verb) {
        return verb < N_VERBS ? verbs[verb].text : (struct slice){ 0 };
}

bool verb_from_text(struct slice text, enum verb *ret_verb) {
        for (enum verb verb = 0; verb < N_VERBS; verb++)
                if (slice_equal(text, verbs[verb].text)) {
                        *ret_verb = verb;
                        return true;
                }
        return false;
}

const char *verb_label(enum verb verb) {
        return verb < N_VERBS ? verbs[verb].label : "unknown";
}

enum access verb_access(enum verb verb) {
        return verbs[verb].access;
}

bool verb_accepts(enum verb verb, size_t n_arguments) {
        return n_arguments >= verbs[verb].n_arguments_min && n_arguments <= verbs[verb].n_arguments_max;
}
