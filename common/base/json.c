/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json.h"

#include <stdio.h>

#include "base/base16.h"
#include "base/base64.h"

/*
 * Write the escape sequence of the first character of text to escaped. Returns the number of bytes
 * of this character; 0 if it needs no escape. JSON does not require the escapes of U+007F to
 * U+009F, but some terminals execute these characters.
 */
static size_t escape(struct slice text, char escaped[sizeof("\\u0000")]) {
        uint8_t byte = text.data[0];

        if (byte == '"' || byte == '\\') {
                snprintf(escaped, sizeof("\\u0000"), "\\%c", byte);
        } else if (byte == '\n') {
                snprintf(escaped, sizeof("\\u0000"), "\\n");
        } else if (byte < 0x20 || byte == 0x7F) {
                snprintf(escaped, sizeof("\\u0000"), "\\u%04x", byte);
        } else if (byte == 0xC2 && text.length > 1 && text.data[1] >= 0x80 && text.data[1] < 0xA0) {
                snprintf(escaped, sizeof("\\u0000"), "\\u%04x", text.data[1]);
                return 2;
        } else {
                return 0;
        }
        return 1;
}

void json_append_string(struct buf *line, struct slice text) {
        size_t n_written = 0;

        buf_append_string(line, "\"");
        for (size_t i = 0; i < text.length; i++) {
                char escaped[sizeof("\\u0000")];
                size_t n = escape((struct slice){ text.data + i, text.length - i }, escaped);

                if (n == 0)
                        continue;
                buf_append(line, text.data + n_written, i - n_written);
                buf_append_string(line, escaped);
                i += n - 1;
                n_written = i + 1;
        }
        buf_append(line, text.data + n_written, text.length - n_written);
        buf_append_string(line, "\"");
}

void json_begin(struct buf *line) {
        buf_append_string(line, "{");
}

void json_end(struct buf *line) {
        buf_append_string(line, "}\n");
}

static void add_name(struct buf *line, const char *name, const char *suffix) {
        if (line->length > 0 && line->data[line->length - 1] != '{')
                buf_append_string(line, ",");
        buf_append_string(line, "\"");
        buf_append_string(line, name);
        buf_append_string(line, suffix);
        buf_append_string(line, "\":");
}

void json_add_name(struct buf *line, const char *name) {
        add_name(line, name, "");
}

void json_add_bytes(struct buf *line, const char *name, struct slice bytes, bool hex) {
        if (!bytes.data) {
                json_add_name(line, name);
                buf_append_string(line, "null");
                return;
        }
        if (!hex && slice_is_utf8(bytes)) {
                json_add_name(line, name);
                json_append_string(line, bytes);
                return;
        }

        add_name(line, name, hex ? "_hex" : "_base64");
        buf_append_string(line, "\"");
        if (hex)
                base16_append(line, bytes);
        else
                base64_append(line, bytes);
        buf_append_string(line, "\"");
}

void json_add_bool(struct buf *line, const char *name, bool value) {
        json_add_name(line, name);
        buf_append_string(line, value ? "true" : "false");
}

void json_add_uint(struct buf *line, const char *name, uint64_t value) {
        json_add_name(line, name);
        buf_append_uint(line, value);
}
