/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/printable.h"

#include <stdio.h>

static bool is_plain(struct slice text, size_t at, bool keep_lines) {
        uint8_t byte = text.data[at];

        if (byte == '\n' || byte == '\t')
                return keep_lines;
        /* U+0080 to U+009F are control characters too: some terminals obey them */
        if (byte == 0xC2 && at + 1 < text.length && text.data[at + 1] < 0xA0)
                return false;
        return byte >= 0x20 && byte != 0x7F;
}

bool is_printable(struct slice text, bool keep_lines) {
        for (size_t i = 0; i < text.length; i++)
                if (!is_plain(text, i, keep_lines))
                        return false;
        return slice_is_utf8(text);
}

void append_printable(struct buf *buf, struct slice text, bool keep_lines) {
        if (is_printable(text, keep_lines)) {
                buf_append_slice(buf, text);
                return;
        }

        for (size_t i = 0; i < text.length; i++) {
                uint8_t byte = text.data[i];
                char escaped[sizeof("\\xNN")];

                if (byte == '\\')
                        buf_append_string(buf, "\\\\");
                else if (byte < 0x80 && is_plain(text, i, keep_lines))
                        buf_append(buf, &byte, 1);
                else if (byte == '\n')
                        buf_append_string(buf, "\\n");
                else if (byte == '\r')
                        buf_append_string(buf, "\\r");
                else if (byte == '\t')
                        buf_append_string(buf, "\\t");
                else {
                        snprintf(escaped, sizeof(escaped), "\\x%02X", byte);
                        buf_append_string(buf, escaped);
                }
        }
}
