/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/pipeline.h"

/*
 * Whether requests are really being served, for a watchdog that looks now and then. All zeros is one that has not looked
 * yet.
 *
 * What waits for the broker is not held against us: while it is away, or takes nothing from us, another start would bring
 * nothing, and lose what is kept in memory alone. Nor are commits that fail: they end, and each request gets its error.
 */
struct progress {
        uint64_t n_done;
        bool was_in_hand;
};

/* False: what was in hand at the last look still is, and nothing at all has been done since. */
bool progress_look(struct progress *progress, const struct pipeline *pipeline);
