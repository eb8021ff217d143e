/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A hybrid logical clock reading: a version, a request's __ts, a fencing token. PROTOCOL.md "Hybrid logical
 * clocks"; Kulkarni
 * et al., "Logical Physical Clocks" (2014).
 */
struct hlc {
        int64_t wall_ms;   /* since the Unix epoch, not negative */
        uint64_t counter;  /* orders readings within one millisecond */
        struct slice node; /* borrowed; not empty, UTF-8, no ':' */
};

enum hlc_style {
        HLC_PADDED,   /* 15 and 5 digits: 001696374425000:00000:Client1 */
        HLC_UNPADDED, /* 1696374425000:0:Client1 */
};

/*
 * Reads wallClock:counter:nodeId, padded or not. Returns 0 or -EINVAL, which stands for every way not to be
 * one. ret_hlc->node points into text.
 */
int hlc_parse(struct slice text, struct hlc *ret_hlc);

void hlc_append(struct buf *buf, struct hlc hlc, enum hlc_style style);

/* By wall clock, then counter, then node id as bytes: below 0, 0 or above 0. */
int hlc_compare(struct hlc a, struct hlc b);

/* True for what may stand behind the second ':'. */
bool hlc_node_is_valid(struct slice node);
