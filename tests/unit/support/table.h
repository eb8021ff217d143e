/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests driven by a table: a static const array, looped over by index, whose rows have a name.
 * Criterion's own parameters must not hold pointers.
 */

#define N_ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* Which row it is, as the message of an assertion. */
#define ROW(table, i) "row %zu: %s", (size_t)(i), (table)[i].name

/* The sign of a comparison's result. */
static inline int sign(int order) {
        return (order > 0) - (order < 0);
}
