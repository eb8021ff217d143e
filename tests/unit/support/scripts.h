/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unit/support/table.h"

/*
 * Requests that test_starved.c gives to two pipelines, one of them with failing allocations: all
 * commands, many outcomes.
 */

enum { BATCH_MAX = 8 };

/* A request, or a tick. */
struct line {
        const char *words; /* separated by blanks; NULL: a tick */
        const char *source;
        const char *fence;
        int64_t pass_ms; /* time that passes before it */
        enum { NO_FAULT, BAD_QOS, BAD_CORRELATION, BAD_VERSION } fault;
        bool ends_batch; /* the batch ends after it */
};

#define LONG_VALUE                                                                                          \
        "long-value-long-value-long-value-long-value-long-value-long-value-long-value-long-value-long-"     \
        "value-"                                                                                            \
        "long-value-long-value-long-value-long-value-long-value-long-value-long-value-long-value-long-"     \
        "value-"

static const struct line all_commands[] = {
        { "KEYNOTIFY w", "c1", NULL, 0, 0, false },
        { "KEYNOTIFY w", "c2", NULL, 0, 0, false },
        { "KEYNOTIFY w", "c1", NULL, 0, 0, true },
        { "SET w v", "c1", NULL, 0, 0, false },
        { "GET w", "c1", NULL, 0, 0, false },
        { "GET none", "c1", NULL, 0, 0, false },
        { "SET w x NX", "c1", NULL, 0, 0, false },
        { "SET w x NEX v", "c1", NULL, 0, 0, true },
        { "SET p " LONG_VALUE " PX 1000", "c1", NULL, 0, 0, false },
        { "SET f v", "c1", "50:0:m", 0, 0, false },
        { "SET f w", "c1", NULL, 0, 0, false },
        { "SET f w", "c1", "40:0:m", 0, 0, false },
        { "SET f w", "c1", "60:0:m", 0, 0, true },
        { "GET f", NULL, NULL, 0, BAD_QOS, false },
        { "GET f", NULL, NULL, 0, BAD_CORRELATION, false },
        { "GET f", NULL, NULL, 0, BAD_VERSION, false },
        { "get f", "c1", NULL, 0, 0, false },
        { "SET f", "c1", NULL, 0, 0, false },
        { "KEYNOTIFY w", NULL, NULL, 0, 0, true },
        { "KEYNOTIFY p", "c3", NULL, 0, 0, false },
        { "KEYNOTIFY w STOP", "c2", NULL, 0, 0, false },
        { "KEYNOTIFY p STOP", "c2", NULL, 0, 0, true },
        { "SET k1 v", "c1", NULL, 0, 0, false },
        { "SET k2 v", "c1", NULL, 0, 0, false },
        { "SET k3 v", "c1", NULL, 0, 0, false },
        { "SET k4 " LONG_VALUE, "c1", NULL, 0, 0, false },
        { "SET w 1", "c1", NULL, 0, 0, false },
        { "SET w 2", "c1", NULL, 0, 0, false },
        { "SET w 3", "c1", NULL, 0, 0, false },
        { "SCAN *", "c1", NULL, 0, 0, true },
        { "SCAN k? token", "c1", NULL, 0, 0, false },
        { "VDEL k1 x", "c1", NULL, 0, 0, false },
        { "VDEL k1 v", "c1", NULL, 0, 0, false },
        { "DEL k2", "c1", NULL, 0, 0, false },
        { "DEL k2", "c1", NULL, 0, 0, false },
        { "DEL w", "c1", NULL, 0, 0, false },
        { "SET k4 " LONG_VALUE LONG_VALUE, "c1", NULL, 0, 0, true },
        { "GET p", "c1", NULL, 1000, 0, true }, /* "p" has expired: no value */
        { "SET p v PX 500", "c1", NULL, 0, 0, true },
        { NULL, NULL, NULL, 500, 0, true }, /* the tick removes "p", which has expired */
        { "SET p v", "c1", NULL, 0, 0, true },
};

/* With a limit of three keys. */
static const struct line at_the_limit[] = {
        { "KEYNOTIFY a", "c1", NULL, 0, 0, false },
        { "KEYNOTIFY x", "c1", NULL, 0, 0, false },
        { "SET a v PX 10", "c1", NULL, 0, 0, false },
        { "SET b v", "c1", NULL, 0, 0, false },
        { "SET x v", "c1", NULL, 0, 0, false },
        { "SET d v", "c1", NULL, 0, 0, true }, /* refused: the fourth key */
        { "SET x 1", "c1", NULL, 10, 0, false },
        { "SET x 2", "c1", NULL, 0, 0, false },
        { "SET x 3", "c1", NULL, 0, 0, false },
        { "SET d v", "c1", NULL, 0, 0, true }, /* accepted: "a" has expired */
        { "SET e v", "c1", NULL, 0, 0, true },
};

struct script {
        const char *name;
        const struct line *lines;
        size_t n_lines;
        uint64_t max_keys;
};

static const struct script scripts[] = {
        { "all commands", all_commands, N_ROWS(all_commands), 1000 },
        { "at the limit", at_the_limit, N_ROWS(at_the_limit), 3 },
};
