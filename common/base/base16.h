/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* RFC 4648 section 8: two upper-case hexadecimal digits for each byte. */
void base16_append(struct buf *buf, struct slice bytes);

/* Return whether the pair of digits is this byte. text may end early, with a NUL. */
bool base16_is_byte(const char *text, uint8_t byte);

/*
 * Append the bytes that the digits spell. Returns 0, -EINVAL for anything that base16_append() does not write, or -ENOMEM;
 * what was appended before an error stays.
 */
int base16_append_decoded(struct buf *buf, struct slice text);
