/* SPDX-License-Identifier: Apache-2.0 */

#include "base/escape.h"

#include <stdio.h>

#include "base/array.h"

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

size_t printable_length(struct slice text) {
        size_t length = character_length(text);

        return length > 0 && is_printable(code_point(text.data, length)) ? length : 0;
}

/* \uXXXX. snprintf() would take three times as long for a text of control characters. */
static void append_code(uint32_t code, char ret_escaped[ESCAPED_SIZE]) {
        static const char digits[] = "0123456789abcdef";
        const char text[] = { '\\',
                              'u',
                              digits[code >> 12 & 15],
                              digits[code >> 8 & 15],
                              digits[code >> 4 & 15],
                              digits[code & 15],
                              '\0' };

        memcpy(ret_escaped, text, sizeof(text));
}

size_t escape_character(struct slice text, char ret_escaped[ESCAPED_SIZE]) {
        uint8_t lead = text.data[0];
        size_t length;

        *ret_escaped = '\0';
        if (lead >= ' ' && lead <= '~' && lead != '"' && lead != '\\')
                return 1; /* without a search: most characters */

        length = character_length(text);
        if (length == 0) {
                snprintf(ret_escaped, ESCAPED_SIZE, "\\\\x%02X", lead);
                return 1;
        }
        if (lead == '"' || lead == '\\')
                snprintf(ret_escaped, ESCAPED_SIZE, "\\%c", lead);
        else if (lead == '\n')
                snprintf(ret_escaped, ESCAPED_SIZE, "\\n");
        else if (!is_printable(code_point(text.data, length))) /* at most 0xFFFF */
                append_code(code_point(text.data, length), ret_escaped);
        return length;
}
