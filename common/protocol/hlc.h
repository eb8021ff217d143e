/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * A timestamp of a hybrid logical clock: a version, a request's __ts, or a fencing token. See
 * PROTOCOL.md "Hybrid logical clocks" and Kulkarni et al., "Logical Physical Clocks" (2014).
 */
struct hlc {
        int64_t wall_ms;   /* since the Unix epoch, not negative */
        uint64_t counter;  /* orders timestamps within one millisecond */
        struct slice node; /* node id: borrowed, not empty, UTF-8, no ':' */
};

enum hlc_style {
        HLC_PADDED,   /* at least 15 and 5 digits: 001696374425000:00000:Client1 */
        HLC_UNPADDED, /* 1696374425000:0:Client1 */
};

/*
 * Parse wallClock:counter:nodeId, padded or not. Returns 0, or -EINVAL for a syntax error, a number out of
 * range, or a node id that brokers do not pass on. ret_hlc->node points into text.
 */
int hlc_parse(struct slice text, struct hlc *ret_hlc);

/*
 * Write wallClock:counter: without the node id and without a NUL. Returns the number of bytes
 * written.
 */
#define HLC_NUMBERS_MAX (2 * (UINT64_DIGITS_MAX + 1))
size_t hlc_format_numbers(char text[HLC_NUMBERS_MAX], struct hlc hlc, enum hlc_style style);

void hlc_append(struct buf *buf, struct hlc hlc, enum hlc_style style);

/*
 * Compare wall clock, then counter, then node id as unsigned bytes. Returns below 0, 0 or above 0.
 */
int hlc_compare(struct hlc a, struct hlc b);

/* Return whether node is a valid node id: not empty, UTF-8, without ':'. */
bool hlc_node_is_valid(struct slice node);
