/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json.h"

#include <stdio.h>

#include "base/base16.h"
#include "base/base64.h"

/* The escape sequence for a byte in a string; NULL if the byte needs none. text is scratch space. */
static const char *escape(uint8_t byte, char *text, size_t size) {
        switch (byte) {
        case '"':
                return "\\\"";
        case '\\':
                return "\\\\";
        case '\n':
                return "\\n";
        default:
                if (byte >= 0x20 && byte != 0x7F)
                        return NULL;
                snprintf(text, size, "\\u%04x", byte);
                return text;
        }
}

void json_append_string(struct buf *line, struct slice text) {
        size_t n_written = 0;

        buf_append_string(line, "\"");
        for (size_t i = 0; i < text.length; i++) {
                char space[sizeof("\\u0000")];
                const char *escaped = escape(text.data[i], space, sizeof(space));

                if (!escaped)
                        continue;
                buf_append(line, text.data + n_written, i - n_written);
                buf_append_string(line, escaped);
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

void json_add_bytes(struct buf *line, const char *name, struct slice bytes, bool hex) {
        if (!bytes.data) {
                json_add_raw(line, name, "null");
                return;
        }
        if (!hex && slice_is_utf8(bytes)) {
                add_name(line, name, "");
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
        json_add_raw(line, name, value ? "true" : "false");
}

void json_add_raw(struct buf *line, const char *name, const char *value) {
        add_name(line, name, "");
        buf_append_string(line, value);
}

void json_add_uint(struct buf *line, const char *name, uint64_t value) {
        add_name(line, name, "");
        buf_append_uint(line, value);
}
