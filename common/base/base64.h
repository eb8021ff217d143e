/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* Append bytes as base64 with padding (RFC 4648 section 4). */
void base64_append(struct buf *buf, struct slice bytes);

/*
 * Append the decoded bytes. Returns 0, -EINVAL if text is not padded base64 or has nonzero trailing
 * bits, or -ENOMEM. On error, bytes decoded so far stay in buf.
 */
int base64_append_decoded(struct buf *buf, struct slice text);
