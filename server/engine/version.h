/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * The store's node id: the maximum length in bytes, and the node id if neither the operator nor the
 * storage has one.
 */
#define NODE_ID_MAX     256
#define NODE_ID_DEFAULT "StateStore"

/*
 * A version that the store assigned; its node id is the store's. PROTOCOL.md "Hybrid logical
 * clocks".
 */
struct version {
        int64_t wall_ms;
        uint32_t counter; /* below 2^31-1 */
};

/* Return < 0, 0 or > 0, as memcmp(). */
static inline int version_compare(struct version a, struct version b) {
        if (a.wall_ms != b.wall_ms)
                return a.wall_ms < b.wall_ms ? -1 : 1;
        return (a.counter > b.counter) - (a.counter < b.counter);
}
