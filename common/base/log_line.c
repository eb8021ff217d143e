/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/escape.h"

/* Room for a quote, a brace and the newline. */
#define END_LENGTH 3

/* Room that a message leaves for the fields after it. */
#define FIELDS_LENGTH 320

#define ELLIPSIS "..."

static void put_bytes(struct log_line *line, const char *text, size_t length) {
        memcpy(line->text + line->length, text, length);
        line->length += length;
}

static bool has_room(const struct log_line *line, size_t length) {
        return line->length + length + END_LENGTH <= sizeof(line->text);
}

/*
 * Put text in quotes. Truncate it so that the line has at most length_max bytes before the closing
 * quote.
 */
static void put_quoted(struct log_line *line, struct slice text, size_t length_max) {
        put_bytes(line, "\"", 1);
        while (text.length > 0) {
                char escaped[ESCAPED_SIZE];
                size_t n = escape_character(text, escaped);
                const char *written = *escaped ? escaped : (const char *)text.data;
                size_t n_written = *escaped ? strlen(escaped) : n;

                if (line->length + n_written + strlen(ELLIPSIS) > length_max) {
                        put_bytes(line, ELLIPSIS, strlen(ELLIPSIS));
                        break;
                }
                put_bytes(line, written, n_written);
                text = slice_skip(text, n);
        }
        put_bytes(line, "\"", 1);
}

static bool needs_no_quotes(struct slice text) {
        for (size_t i = 0; i < text.length; i++)
                if (text.data[i] <= ' ' || text.data[i] > '~' || strchr("\"\\=", text.data[i]))
                        return false;
        return text.length > 0;
}

static void put_name(struct log_line *line, const char *name) {
        if (line->has_fields)
                put_bytes(line, line->is_json ? "," : " ", 1);
        line->has_fields = true;
        if (line->is_json)
                put_bytes(line, "\"", 1);
        put_bytes(line, name, strlen(name));
        put_bytes(line, line->is_json ? "\":" : "=", line->is_json ? 2 : 1);
}

void log_line_begin(struct log_line *line, char priority, bool is_json) {
        *line = (struct log_line){ .is_json = is_json };
        if (priority) {
                put_bytes(line, "<", 1);
                put_bytes(line, &priority, 1);
                put_bytes(line, ">", 1);
        }
        if (is_json)
                put_bytes(line, "{", 1);
}

void log_line_add_text(struct log_line *line, const char *name, struct slice text) {
        if (!has_room(line, strlen(name) + strlen(",\"\":\"\"") + LOG_VALUE_MAX))
                return;
        put_name(line, name);
        if (!line->is_json && text.length <= LOG_VALUE_MAX && needs_no_quotes(text))
                put_bytes(line, (const char *)text.data, text.length);
        else
                put_quoted(line, text, line->length + LOG_VALUE_MAX);
}

void log_line_add_number(struct log_line *line, const char *name, uint64_t number) {
        char digits[24];
        int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);

        if (!has_room(line, strlen(name) + strlen(",\"\":") + (size_t)n))
                return;
        put_name(line, name);
        put_bytes(line, digits, (size_t)n);
}

void log_line_add_message(struct log_line *line, const char *name, struct slice text) {
        put_name(line, name);
        put_quoted(line, text, sizeof(line->text) - END_LENGTH - FIELDS_LENGTH);
}

void log_line_end(struct log_line *line) {
        if (line->is_json)
                put_bytes(line, "}", 1);
        put_bytes(line, "\n", 1);
}
