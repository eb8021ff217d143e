/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of a request: every answer that the store can give (protocol sections 5 and 6). Errors stand
 * in the order in which they are looked for. The texts are the protocol layer's.
 */
enum outcome {
        OUTCOME_DONE,              /* SET, KEYNOTIFY, STOP */
        OUTCOME_VALUE,             /* GET found it */
        OUTCOME_NO_VALUE,          /* GET did not */
        OUTCOME_DELETED,           /* DEL, VDEL */
        OUTCOME_NOTHING,           /* there was nothing to delete or stop */
        OUTCOME_CONDITION_NOT_MET, /* NX, NEX, VDEL */
        OUTCOME_PAGE,              /* SCAN */

        OUTCOME_SYNTAX_ERROR,
        OUTCOME_UNKNOWN_COMMAND,
        OUTCOME_WRONG_NUMBER_OF_ARGUMENTS,
        OUTCOME_EMPTY_KEY,
        OUTCOME_MISSING_TIMESTAMP,
        OUTCOME_MALFORMED_TIMESTAMP,
        OUTCOME_TIMESTAMP_TOO_FAR,
        OUTCOME_FENCE_TOO_FAR,
        OUTCOME_NOT_AUTHORIZED,
        OUTCOME_FENCE_REQUIRED,
        OUTCOME_FENCE_TOO_OLD,
        OUTCOME_KEY_TOO_LONG_TO_NOTIFY,
        OUTCOME_CLIENT_UNKNOWN, /* KEYNOTIFY from nobody */
        OUTCOME_QUOTA_EXCEEDED,
        OUTCOME_OUT_OF_MEMORY,
        OUTCOME_DISK_FULL,
        OUTCOME_STORAGE_FAILED,

        N_OUTCOMES,
};
