/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* Append two upper-case hexadecimal digits for each byte (RFC 4648 section 8). */
void base16_append(struct buf *buf, struct slice bytes);

/*
 * Return whether the two digits at text encode this byte. text is NUL-terminated and may be shorter
 * than two digits.
 */
bool base16_is_byte(const char *text, uint8_t byte);

/*
 * Append the decoded bytes. Returns 0, -EINVAL if text is not base16 with upper-case digits, or
 * -ENOMEM. On error, bytes decoded so far stay in buf.
 */
int base16_append_decoded(struct buf *buf, struct slice text);
