/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json.h"

#include "base/base16.h"
#include "base/base64.h"
#include "base/escape.h"

void json_append_string(struct buf *line, struct slice text) {
        size_t n_written = 0;

        buf_append_string(line, "\"");
        for (size_t i = 0; i < text.length;) {
                char escaped[ESCAPED_SIZE];
                size_t n = escape_character(slice_skip(text, i), escaped);

                if (*escaped) {
                        buf_append(line, text.data + n_written, i - n_written);
                        buf_append_string(line, escaped);
                        n_written = i + n;
                }
                i += n;
        }
        buf_append(line, text.data + n_written, text.length - n_written);
        buf_append_string(line, "\"");
}

void json_begin(struct buf *line) {
        if (line->length > 0 && line->data[line->length - 1] == '}')
                buf_append_string(line, ",");
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
