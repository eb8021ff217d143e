/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unit/support/table.h"

/* What test_starved.c has two daemons do: all commands, in every way that they can go. */

enum { BATCH_MAX = 8 };

/* A request; the last of a batch says so. */
struct line {
        const char *words; /* with blanks between; NULL: time passes, with a tick */
        const char *source;
        const char *fence;
        int64_t pass_ms; /* before it */
        enum { AS_IT_SHOULD_BE, BAD_QOS, BAD_CORRELATION, BAD_VERSION } reply_address;
        bool ends_batch;
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
        { "GET p", "c1", NULL, 1000, 0, true }, /* has expired: goes here and now */
        { "SET p v PX 500", "c1", NULL, 0, 0, true },
        { NULL, NULL, NULL, 500, 0, true }, /* goes by itself */
        { "SET p v", "c1", NULL, 0, 0, true },
};

/* Three keys are all there may be. */
static const struct line at_the_limit[] = {
        { "KEYNOTIFY a", "c1", NULL, 0, 0, false },
        { "KEYNOTIFY x", "c1", NULL, 0, 0, false },
        { "SET a v PX 10", "c1", NULL, 0, 0, false },
        { "SET b v", "c1", NULL, 0, 0, false },
        { "SET x v", "c1", NULL, 0, 0, false },
        { "SET d v", "c1", NULL, 0, 0, true }, /* one too many */
        { "SET x 1", "c1", NULL, 10, 0, false },
        { "SET x 2", "c1", NULL, 0, 0, false },
        { "SET x 3", "c1", NULL, 0, 0, false },
        { "SET d v", "c1", NULL, 0, 0, true }, /* in the place of "a", which has expired */
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
