/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log_line.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"

/* Room for a quote, a brace and the newline. */
#define END_LENGTH 3

/* Room that a message leaves for the fields after it. */
#define FIELDS_LENGTH 320

#define ELLIPSIS "..."

static void put(struct log_line *line, const char *text, size_t length) {
        memcpy(line->text + line->length, text, length);
        line->length += length;
}

static bool has_room(const struct log_line *line, size_t length) {
        return line->length + length + END_LENGTH <= sizeof(line->text);
}

/* Length of the UTF-8 sequence at the beginning of text; 0 if it is invalid. */
static size_t character_length(struct slice text) {
        uint8_t lead = text.data[0];
        size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

        return length <= text.length && slice_is_utf8((struct slice){ text.data, length }) ? length : 0;
}

/* The code point of a UTF-8 sequence of this length. */
static uint32_t code_point(const uint8_t *data, size_t length) {
        uint32_t code = length == 1 ? data[0] : data[0] & (0x7Fu >> length);

        for (size_t i = 1; i < length; i++)
                code = code << 6 | (data[i] & 0x3Fu);
        return code;
}

/*
 * The characters that a terminal or a viewer of logs does not show as themselves: they end a line,
 * change the direction of the text around them, or are invisible. Without escapes a client could
 * make a line look like another one.
 */
static const struct {
        uint16_t first, last;
} unprintable[] = {
        { 0x0000, 0x001F }, /* C0 controls */
        { 0x007F, 0x009F }, /* DEL, C1 controls */
        { 0x00AD, 0x00AD }, /* soft hyphen */
        { 0x061C, 0x061C }, /* direction */
        { 0x180E, 0x180E }, /* vowel separator without width */
        { 0x200B, 0x200F }, /* zero width, direction */
        { 0x2028, 0x202E }, /* line and paragraph separators, direction */
        { 0x2060, 0x206F }, /* zero width, direction */
        { 0xFEFF, 0xFEFF }, /* byte order mark */
};
#define N_UNPRINTABLE ARRAY_LENGTH(unprintable)

static bool is_printable(uint32_t code) {
        for (size_t i = 0; i < N_UNPRINTABLE; i++)
                if (code >= unprintable[i].first && code <= unprintable[i].last)
                        return false;
        return true;
}

size_t log_printable_length(struct slice text) {
        size_t length = character_length(text);

        return length > 0 && is_printable(code_point(text.data, length)) ? length : 0;
}

/*
 * Write the next character, escaped as in a JSON string. JSON has no escape sequence for a byte
 * that is not UTF-8: it becomes \\xNN, which JSON decodes to the text \xNN. Returns the number of
 * bytes of text consumed.
 */
static size_t escape(struct slice text, char *escaped, size_t size) {
        size_t length = character_length(text);
        uint8_t lead = text.data[0];
        uint32_t code;

        if (length == 0) {
                snprintf(escaped, size, "\\\\x%02X", lead);
                return 1;
        }
        code = code_point(text.data, length);
        if (lead == '"' || lead == '\\')
                snprintf(escaped, size, "\\%c", lead);
        else if (lead == '\n')
                snprintf(escaped, size, "\\n");
        else if (!is_printable(code)) /* at most 0xFFFF */
                snprintf(escaped, size, "\\u%04X", (uint16_t)code);
        else
                snprintf(escaped, size, "%.*s", (int)length, (const char *)text.data);
        return length;
}

/*
 * Put text in quotes. Truncate it so that the line has at most length_max bytes before the closing
 * quote.
 */
static void put_quoted(struct log_line *line, struct slice text, size_t length_max) {
        put(line, "\"", 1);
        while (text.length > 0) {
                char escaped[sizeof("\\u0000")];
                size_t n = escape(text, escaped, sizeof(escaped));

                if (line->length + strlen(escaped) + strlen(ELLIPSIS) > length_max) {
                        put(line, ELLIPSIS, strlen(ELLIPSIS));
                        break;
                }
                put(line, escaped, strlen(escaped));
                text = slice_skip(text, n);
        }
        put(line, "\"", 1);
}

static bool needs_no_quotes(struct slice text) {
        for (size_t i = 0; i < text.length; i++)
                if (text.data[i] <= ' ' || text.data[i] > '~' || strchr("\"\\=", text.data[i]))
                        return false;
        return text.length > 0;
}

static void put_name(struct log_line *line, const char *name) {
        if (line->has_fields)
                put(line, line->is_json ? "," : " ", 1);
        line->has_fields = true;
        if (line->is_json)
                put(line, "\"", 1);
        put(line, name, strlen(name));
        put(line, line->is_json ? "\":" : "=", line->is_json ? 2 : 1);
}

void log_line_begin(struct log_line *line, char priority, bool is_json) {
        *line = (struct log_line){ .is_json = is_json };
        if (priority) {
                put(line, "<", 1);
                put(line, &priority, 1);
                put(line, ">", 1);
        }
        if (is_json)
                put(line, "{", 1);
}

void log_line_add_text(struct log_line *line, const char *name, struct slice text) {
        if (!has_room(line, strlen(name) + strlen(",\"\":\"\"") + LOG_VALUE_MAX))
                return;
        put_name(line, name);
        if (!line->is_json && text.length <= LOG_VALUE_MAX && needs_no_quotes(text))
                put(line, (const char *)text.data, text.length);
        else
                put_quoted(line, text, line->length + LOG_VALUE_MAX);
}

void log_line_add_number(struct log_line *line, const char *name, uint64_t number) {
        char digits[24];
        int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);

        if (!has_room(line, strlen(name) + strlen(",\"\":") + (size_t)n))
                return;
        put_name(line, name);
        put(line, digits, (size_t)n);
}

void log_line_add_message(struct log_line *line, const char *name, struct slice text) {
        put_name(line, name);
        put_quoted(line, text, sizeof(line->text) - END_LENGTH - FIELDS_LENGTH);
}

void log_line_end(struct log_line *line) {
        if (line->is_json)
                put(line, "}", 1);
        put(line, "\n", 1);
}
