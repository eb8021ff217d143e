/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/outcome_names.h"

#include <errno.h>

#include "common/assert.h"

static const char *const names[] = {
        [OUTCOME_DONE] = "done",
        [OUTCOME_VALUE] = "value",
        [OUTCOME_NO_VALUE] = "no value",
        [OUTCOME_DELETED] = "deleted",
        [OUTCOME_NOTHING] = "nothing",
        [OUTCOME_CONDITION_NOT_MET] = "condition not met",
        [OUTCOME_PAGE] = "page",
        [OUTCOME_SYNTAX_ERROR] = "syntax error",
        [OUTCOME_UNKNOWN_COMMAND] = "unknown command",
        [OUTCOME_WRONG_NUMBER_OF_ARGUMENTS] = "wrong number of arguments",
        [OUTCOME_EMPTY_KEY] = "empty key",
        [OUTCOME_MISSING_TIMESTAMP] = "missing timestamp",
        [OUTCOME_MALFORMED_TIMESTAMP] = "malformed timestamp",
        [OUTCOME_TIMESTAMP_TOO_FAR] = "timestamp too far",
        [OUTCOME_FENCE_TOO_FAR] = "fence too far",
        [OUTCOME_NOT_AUTHORIZED] = "not authorized",
        [OUTCOME_FENCE_REQUIRED] = "fence required",
        [OUTCOME_FENCE_TOO_OLD] = "fence too old",
        [OUTCOME_KEY_TOO_LONG_TO_NOTIFY] = "key too long to notify",
        [OUTCOME_CLIENT_UNKNOWN] = "client unknown",
        [OUTCOME_QUOTA_EXCEEDED] = "quota exceeded",
        [OUTCOME_OUT_OF_MEMORY] = "out of memory",
        [OUTCOME_DISK_FULL] = "disk full",
        [OUTCOME_STORAGE_FAILED] = "storage failed",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == N_OUTCOMES, "each outcome has a name");

const char *outcome_name(enum outcome outcome) {
        ASSERT(outcome < N_OUTCOMES && names[outcome]);
        return names[outcome];
}

int outcome_from_name(struct slice name, enum outcome *ret_outcome) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                if (slice_equal(name, slice_from_string(names[outcome]))) {
                        *ret_outcome = outcome;
                        return 0;
                }
        return -EINVAL;
}
