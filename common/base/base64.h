/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* RFC 4648 section 4, with padding. */
void base64_append(struct buf *buf, struct slice bytes);

/* Returns 0, -EINVAL for what base64_append() does not write, or -ENOMEM; what was appended before stays. */
int base64_append_decoded(struct buf *buf, struct slice text);
