/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base16.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "0123456789ABCDEF";

void base16_append(struct buf *buf, struct slice bytes) {
        for (size_t i = 0; i < bytes.length; i++) {
                char pair[2] = { digits[bytes.data[i] >> 4], digits[bytes.data[i] & 0xF] };

                buf_append(buf, pair, sizeof(pair));
        }
}

bool base16_is_byte(const char *text, uint8_t byte) {
        return text[0] == digits[byte >> 4] && text[1] == digits[byte & 0xF];
}

int base16_append_decoded(struct buf *buf, struct slice text) {
        if (text.length % 2 != 0)
                return -EINVAL;

        for (size_t i = 0; i < text.length; i += 2) {
                const char *high = memchr(digits, text.data[i], 16);
                const char *low = memchr(digits, text.data[i + 1], 16);
                uint8_t byte;

                if (!high || !low)
                        return -EINVAL;

                byte = (uint8_t)((high - digits) << 4 | (low - digits));
                buf_append(buf, &byte, 1);
        }
        return buf_failed(buf) ? -ENOMEM : 0;
}
