/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/entry.h"
#include "protocol/hlc.h"

/*
 * The store's hybrid logical clock: where its versions come from. PROTOCOL.md "Hybrid logical clocks", after
 * Kulkarni et al.,
 * "Logical Physical Clocks" (2014), figure 5. It never goes back, whatever the system clock does.
 */
struct clock {
        struct version last;
};

/* How far a request's reading may be ahead of our wall clock. */
#define CLOCK_SKEW_MAX_MS 60000

/* The reading for something that happens here. Greater than every reading before. */
struct version clock_tick(struct clock *clock, int64_t wall_ms);

/* The reading for a request that bears `remote`. Greater than it, and than every reading before. */
struct version clock_receive(struct clock *clock, int64_t wall_ms, struct hlc remote);

bool clock_is_too_far_ahead(struct hlc remote, int64_t wall_ms);

/* The same of one that may be our own: what this clock, of this node, has reached already is never too far. */
bool clock_is_too_far_beyond(const struct clock *clock, struct slice node_id, struct hlc remote,
                             int64_t wall_ms);
