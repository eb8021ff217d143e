/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/*
 * Text to numbers and back, without locale, sign, blanks or surprises.
 *
 * Parsers return 0, or -EINVAL for text that is not of the form and -ERANGE for a value that does not fit.
 * *ret_value is written on 0 only.
 */

/* Decimal digits only, leading zeros allowed: 0 to 2^64-1. */
int parse_uint64(struct slice text, uint64_t *ret_value);

/*
 * A number and a unit: ms, s, m, h or d. Without one nobody knows what is meant, so it is -EINVAL, as a fraction is.
 * The result is in milliseconds, 0 to 2^63-1.
 */
int parse_duration(struct slice text, int64_t *ret_value_ms);

/* A number of bytes, bare or with KiB, MiB, GiB: 0 to 2^64-1. */
int parse_size(struct slice text, uint64_t *ret_value);
