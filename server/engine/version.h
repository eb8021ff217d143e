/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Maximum length of the store's node id in bytes. */
#define NODE_ID_MAX 256

/* A version that the store assigned; its node id is the store's. PROTOCOL.md "Hybrid logical clocks". */
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
