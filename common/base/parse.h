/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * Parse numbers with units, independent of the locale. Signs and blanks are errors. parse_uint64()
 * is in base/bytes.h.
 *
 * Each function returns 0, -EINVAL for a syntax error, or -ERANGE if the value is too large.
 * *ret_value is set on success only.
 */

/*
 * An integer and a unit: ms, s, m, h or d. The unit is required, because a bare number is
 * ambiguous. The result is in milliseconds, 0 to 2^63-1.
 */
int parse_duration(struct slice text, int64_t *ret_value_ms);

/* An integer, optionally with the unit KiB, MiB or GiB. The result is in bytes, 0 to 2^64-1. */
int parse_size(struct slice text, uint64_t *ret_value);
