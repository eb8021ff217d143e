/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base64.h"

#include <errno.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_append(struct buf *buf, struct slice bytes) {
        for (size_t i = 0; i < bytes.length; i += 3) {
                size_t n = bytes.length - i < 3 ? bytes.length - i : 3;
                uint32_t group = (uint32_t)bytes.data[i] << 16;
                char text[4];

                if (n > 1)
                        group |= (uint32_t)bytes.data[i + 1] << 8;
                if (n > 2)
                        group |= bytes.data[i + 2];
                for (size_t j = 0; j < sizeof(text); j++)
                        text[j] = j <= n ? digits[group >> (18 - 6 * j) & 0x3F] : '=';
                buf_append(buf, text, sizeof(text));
        }
}

/*
 * Decode four characters to three bytes, or fewer if the last group is padded. Unused trailing bits
 * must be 0.
 */
static int append_group(struct buf *buf, const uint8_t *text, bool is_last) {
        size_t n_digits = 4;
        uint32_t group = 0;
        uint8_t bytes[3];

        while (is_last && n_digits > 2 && text[n_digits - 1] == '=')
                n_digits--;
        for (size_t i = 0; i < 4; i++) {
                const char *digit = i < n_digits ? memchr(digits, text[i], 64) : digits;

                if (!digit)
                        return -EINVAL;
                group = group << 6 | (uint32_t)(digit - digits);
        }
        if (group & ((UINT32_C(1) << 8 * (4 - n_digits)) - 1))
                return -EINVAL;

        bytes[0] = (uint8_t)(group >> 16);
        bytes[1] = (uint8_t)(group >> 8);
        bytes[2] = (uint8_t)group;
        buf_append(buf, bytes, n_digits - 1);
        return 0;
}

int base64_append_decoded(struct buf *buf, struct slice text) {
        int r;

        if (text.length % 4 != 0)
                return -EINVAL;

        for (size_t i = 0; i < text.length; i += 4) {
                r = append_group(buf, text.data + i, i + 4 == text.length);
                if (r < 0)
                        return r;
        }
        return buf_failed(buf) ? -ENOMEM : 0;
}
