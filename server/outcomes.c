/* SPDX-License-Identifier: Apache-2.0 */

#include "outcomes.h"

#define SET       (1U << VERB_SET)
#define GET       (1U << VERB_GET)
#define DEL       (1U << VERB_DEL)
#define VDEL      (1U << VERB_VDEL)
#define KEYNOTIFY (1U << VERB_KEYNOTIFY)
#define SCAN      (1U << VERB_SCAN)
#define UNKNOWN   (1U << N_VERBS)

#define FENCED (SET | DEL | VDEL)
#define ALL    (SET | GET | DEL | VDEL | KEYNOTIFY | SCAN)

/* Whose requests can have it. */
static const unsigned int verbs[N_OUTCOMES] = {
        [OUTCOME_DONE] = SET | KEYNOTIFY,
        [OUTCOME_VALUE] = GET,
        [OUTCOME_NO_VALUE] = GET,
        [OUTCOME_DELETED] = DEL | VDEL,
        [OUTCOME_NOTHING] = DEL | VDEL | KEYNOTIFY,
        [OUTCOME_CONDITION_NOT_MET] = SET | VDEL,
        [OUTCOME_PAGE] = SCAN,

        [OUTCOME_SYNTAX_ERROR] = SET | KEYNOTIFY | SCAN | UNKNOWN,
        [OUTCOME_UNKNOWN_COMMAND] = UNKNOWN,
        [OUTCOME_WRONG_NUMBER_OF_ARGUMENTS] = ALL,
        [OUTCOME_EMPTY_KEY] = ALL & ~SCAN,
        [OUTCOME_MISSING_TIMESTAMP] = SET,
        [OUTCOME_MALFORMED_TIMESTAMP] = ALL,
        [OUTCOME_TIMESTAMP_TOO_FAR] = ALL,
        [OUTCOME_FENCE_TOO_FAR] = FENCED,
        [OUTCOME_NOT_AUTHORIZED] = ALL,
        [OUTCOME_FENCE_REQUIRED] = FENCED,
        [OUTCOME_FENCE_TOO_OLD] = FENCED,
        [OUTCOME_KEY_TOO_LONG_TO_NOTIFY] = KEYNOTIFY,
        [OUTCOME_CLIENT_UNKNOWN] = KEYNOTIFY,
        [OUTCOME_QUOTA_EXCEEDED] = SET | KEYNOTIFY,
        [OUTCOME_OUT_OF_MEMORY] = ALL & ~GET,
        /* a batch fails as a whole, and those in it who only read with it: they have seen what is not stored */
        [OUTCOME_DISK_FULL] = ALL,
        [OUTCOME_STORAGE_FAILED] = ALL,
};

bool outcome_is_possible(enum verb verb, enum outcome outcome) {
        return verbs[outcome] & 1U << verb;
}
