/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/outcome.h"

#include <errno.h>

#include "base/assert.h"

enum {
#define VERB_BIT(symbol, ...) ON_##symbol = 1 << VERB_##symbol,
        VERBS(VERB_BIT)
#undef VERB_BIT
                ON_UNKNOWN = 1 << VERB_UNKNOWN,
        ON_KNOWN = ON_UNKNOWN - 1,
#define VERB_BIT_IF(flag, symbol, name, access, min, max, flags, ...) | ((flags) & (flag) ? ON_##symbol : 0)

#define VERB_BIT_IF_FENCED(...)  VERB_BIT_IF(VERB_IS_FENCED, __VA_ARGS__)
#define VERB_BIT_IF_STORING(...) VERB_BIT_IF(VERB_STORES_VALUE, __VA_ARGS__)
#define VERB_BIT_IF_TIMED(...)   VERB_BIT_IF(VERB_NEEDS_TIMESTAMP, __VA_ARGS__)
        ON_FENCED = 0 VERBS(VERB_BIT_IF_FENCED),
        ON_STORING = 0 VERBS(VERB_BIT_IF_STORING),
        ON_TIMED = 0 VERBS(VERB_BIT_IF_TIMED),
#undef VERB_BIT_IF_TIMED
#undef VERB_BIT_IF_STORING
#undef VERB_BIT_IF_FENCED
#undef VERB_BIT_IF
};

const struct outcome_properties outcomes[N_OUTCOMES] = {
#define REPLY_PROPERTIES(symbol, name, verbs, built_from, payload)                                          \
        [OUTCOME_##symbol] = { name, verbs, PAYLOAD_##built_from, OUTCOME_UNLOGGED },
#define ERROR_PROPERTIES(symbol, name, verbs, log, text)                                                    \
        [OUTCOME_##symbol] = { name, verbs, PAYLOAD_CONSTANT, log },
        OUTCOMES(REPLY_PROPERTIES, ERROR_PROPERTIES)
#undef REPLY_PROPERTIES
#undef ERROR_PROPERTIES
};

const char *outcome_name(enum outcome outcome) {
        ASSERT(outcome < N_OUTCOMES);
        return outcomes[outcome].name;
}

int outcome_from_name(struct slice name, enum outcome *ret_outcome) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                if (slice_equal(name, slice_from_string(outcomes[outcome].name))) {
                        *ret_outcome = outcome;
                        return 0;
                }
        return -EINVAL;
}

bool outcome_is_possible(enum verb verb, enum outcome outcome) {
        return outcomes[outcome].verbs & 1U << verb;
}
