/* SPDX-License-Identifier: Apache-2.0 */

/* Untrusted bytes in the log: in a message and in fields. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_line.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice bytes;
        const char *text;
} texts[] = {
        { "nothing", S(""), "" },
        { "absent", { NULL, 0 }, "" },
        { "plain", S("client-1 of 2"), "client-1 of 2" },
        { "UTF-8 is unchanged", S("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
          "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80" },
        { "a newline", S("a\nb"), "a\\x0Ab" },
        { "a carriage return", S("a\rb"), "a\\x0Db" },
        { "an escape sequence", S("\x1B[2J"), "\\x1B[2J" },
        { "NUL", S("a\0b"), "a\\x00b" },
        { "DEL", S("\x7F"), "\\x7F" },
        { "the byte before the first printable byte", S("\x1F"), "\\x1F" },
        { "the first and the last printable byte", S(" ~"), " ~" },
        { "a quote", S("\"quoted\""), "\\x22quoted\\x22" },
        { "a backslash, so that escapes cannot be forged", S("\\x0A"), "\\x5Cx0A" },
        { "a printf format is plain text", S("%s%n"), "%s%n" },
        { "not UTF-8", S("a\xFFz"), "a\\xFFz" },
        { "one invalid byte makes all bytes of the text invalid", S("\xC3\xA4\xFF"), "\\xC3\\xA4\\xFF" },
        { "control characters of two bytes",
          S("a\xC2\x85\xC2\x9B"
            "b"),
          "a\\xC2\\x85\\xC2\\x9Bb" },
        { "the first code point after them", S("\xC2\xA0"), "\xC2\xA0" },
        { "a line separator", S("\xE2\x80\xA8"), "\\xE2\\x80\\xA8" },
        { "a byte order mark", S("\xEF\xBB\xBF"), "\\xEF\\xBB\\xBF" },
};

Test(log_text, makes_untrusted_bytes_printable) {
        for (size_t i = 0; i < N_ROWS(texts); i++)
                cr_expect_str_eq(log_text(texts[i].bytes).text, texts[i].text, ROW(texts, i));
}

static const struct {
        const char *name;
        struct slice unit;
} long_texts[] = {
        { "plain", S("a") },
        { "escaped", S("\n") },
        { "not UTF-8", S("\xFF") },
        { "two bytes", S("\xC3\xA4") },
        { "three bytes", S("\xE2\x82\xAC") },
        { "four bytes", S("\xF0\x9F\x98\x80") },
};

/*
 * For each range of escaped characters: the last character before it, both ends, and the first one
 * after it.
 */
static const struct {
        const char *name;
        struct slice character;
        uint16_t code;
        bool is_escaped;
} characters[] = {
        { "U+001F", S("\x1F"), 0x001F, true },
        { "U+0020", S(" "), 0x0020, false },
        { "U+007E", S("~"), 0x007E, false },
        { "U+007F", S("\x7F"), 0x007F, true },
        { "U+0080", S("\xC2\x80"), 0x0080, true },
        { "U+009F", S("\xC2\x9F"), 0x009F, true },
        { "U+00A0", S("\xC2\xA0"), 0x00A0, false },
        { "U+061B", S("\xD8\x9B"), 0x061B, false },
        { "U+061C, Arabic letter mark", S("\xD8\x9C"), 0x061C, true },
        { "U+061D", S("\xD8\x9D"), 0x061D, false },
        { "U+200A", S("\xE2\x80\x8A"), 0x200A, false },
        { "U+00AD", S("\xC2\xAD"), 0x00AD, true },
        { "U+180E", S("\xE1\xA0\x8E"), 0x180E, true },
        { "U+200B", S("\xE2\x80\x8B"), 0x200B, true },
        { "U+200E, left-to-right mark", S("\xE2\x80\x8E"), 0x200E, true },
        { "U+200F, right-to-left mark", S("\xE2\x80\x8F"), 0x200F, true },
        { "U+2010", S("\xE2\x80\x90"), 0x2010, false },
        { "U+2027", S("\xE2\x80\xA7"), 0x2027, false },
        { "U+2028, line separator", S("\xE2\x80\xA8"), 0x2028, true },
        { "U+2029, paragraph separator", S("\xE2\x80\xA9"), 0x2029, true },
        { "U+202A, left-to-right embedding", S("\xE2\x80\xAA"), 0x202A, true },
        { "U+202E, right-to-left override", S("\xE2\x80\xAE"), 0x202E, true },
        { "U+202F", S("\xE2\x80\xAF"), 0x202F, false },
        { "U+205F", S("\xE2\x81\x9F"), 0x205F, false },
        { "U+2060", S("\xE2\x81\xA0"), 0x2060, true },
        { "U+2066, left-to-right isolate", S("\xE2\x81\xA6"), 0x2066, true },
        { "U+2069, pop directional isolate", S("\xE2\x81\xA9"), 0x2069, true },
        { "U+206F", S("\xE2\x81\xAF"), 0x206F, true },
        { "U+2070", S("\xE2\x81\xB0"), 0x2070, false },
        { "U+FEFE", S("\xEF\xBB\xBE"), 0xFEFE, false },
        { "U+FEFF, byte order mark", S("\xEF\xBB\xBF"), 0xFEFF, true },
        { "U+FF00", S("\xEF\xBC\x80"), 0xFF00, false },
};

Test(log_text, shows_only_characters_that_a_terminal_shows_as_themselves) {
        for (size_t i = 0; i < N_ROWS(characters); i++) {
                struct slice character = characters[i].character;
                char escaped[32] = "";

                for (size_t j = 0; j < character.length; j++)
                        snprintf(escaped + 4 * j, sizeof("\\xNN"), "\\x%02X", character.data[j]);
                cr_expect_str_eq(log_text(character).text,
                                 characters[i].is_escaped ? escaped : (const char *)character.data,
                                 ROW(characters, i));
        }
}

/* All lengths, to cover every kind of character at the point of truncation. */
Test(log_text, is_truncated_with_an_ellipsis) {
        for (size_t i = 0; i < N_ROWS(long_texts); i++)
                for (size_t n_units = 0; n_units < 2 * LOG_TEXT_MAX; n_units++)
                        for (size_t n_before = 0; n_before < 4; n_before++) {
                                struct buf bytes = { 0 };
                                struct log_text text;
                                size_t length;

                                buf_append(&bytes, "aaaa", n_before);
                                for (size_t j = 0; j < n_units; j++)
                                        buf_append_slice(&bytes, long_texts[i].unit);
                                text = log_text(buf_slice(&bytes));
                                length = strnlen(text.text, LOG_TEXT_MAX);
                                cr_assert_lt(length, LOG_TEXT_MAX, ROW(long_texts, i));
                                cr_expect(slice_is_utf8(slice_from_string(text.text)),
                                          "row %zu: %s, %zu of them", i, long_texts[i].name, n_units);
                                if (bytes.length > LOG_TEXT_MAX)
                                        cr_expect_str_eq(text.text + length - 3, "...", ROW(long_texts, i));
                                buf_deinit(&bytes);
                        }
}

/* The printed line without its time. */
static char *print_fields(enum log_format format, const char *message, const struct log_field *fields) {
        struct log_limit limit = { 0 };
        struct capture capture;
        char *printed, *level;

        log_set_format(format);
        capture_start(&capture, STDERR_FILENO);
        log_limited_fields(&limit, LOG_INFO, message, fields);
        printed = capture_end(&capture);
        level = strstr(printed, "level");
        cr_assert_not_null(level, "%s", printed);
        memmove(printed, level, strlen(level) + 1);
        return printed;
}

static const struct {
        const char *name;
        struct slice value;
        const char *text, *json;
} values[] = {
        { "a word", S("client-1"), "client-1", "\"client-1\"" },
        { "nothing", S(""), "\"\"", "\"\"" },
        { "absent", { NULL, 0 }, "\"\"", "\"\"" },
        { "a blank", S("a b"), "\"a b\"", "\"a b\"" },
        { "text that looks like a field", S("a level=error"), "\"a level=error\"", "\"a level=error\"" },
        { "an equals sign", S("a=b"), "\"a=b\"", "\"a=b\"" },
        { "a quote", S("\""), "\"\\\"\"", "\"\\\"\"" },
        { "a backslash", S("\\"), "\"\\\\\"", "\"\\\\\"" },
        { "a line's end", S("a\nb"), "\"a\\nb\"", "\"a\\nb\"" },
        { "an escape sequence", S("\x1B[2J"), "\"\\u001b[2J\"", "\"\\u001b[2J\"" },
        { "NUL", S("a\0b"), "\"a\\u0000b\"", "\"a\\u0000b\"" },
        { "DEL", S("\x7F"), "\"\\u007f\"", "\"\\u007f\"" },
        { "a control character of two bytes", S("\xC2\x9B"), "\"\\u009b\"", "\"\\u009b\"" },
        { "UTF-8", S("\xC3\xA4\xF0\x9F\x98\x80"), "\"\xC3\xA4\xF0\x9F\x98\x80\"",
          "\"\xC3\xA4\xF0\x9F\x98\x80\"" },
        { "not UTF-8", S("a\xFF\xC3"), "\"a\\\\xFF\\\\xC3\"", "\"a\\\\xFF\\\\xC3\"" },
};

Test(log_fields, escape_untrusted_bytes) {
        for (size_t i = 0; i < N_ROWS(values); i++) {
                const struct log_field fields[] = { LOG_FIELD_TEXT("client", values[i].value),
                                                    LOG_FIELD_NUMBER("limit", 18446744073709551615u),
                                                    { 0 } };
                char expected[256], *printed;

                snprintf(expected, sizeof(expected),
                         "level=info msg=\"an event\" client=%s limit=18446744073709551615\n",
                         values[i].text);
                printed = print_fields(LOG_FORMAT_TEXT, "an event", fields);
                cr_expect_str_eq(printed, expected, ROW(values, i));
                free(printed);

                snprintf(expected, sizeof(expected),
                         "level\":\"info\",\"msg\":\"an "
                         "event\",\"client\":%s,\"limit\":18446744073709551615}\n",
                         values[i].json);
                printed = print_fields(LOG_FORMAT_JSON, "an event", fields);
                cr_expect_str_eq(printed, expected, ROW(values, i));
                free(printed);
        }
}

Test(log_fields, show_only_characters_that_a_terminal_shows_as_themselves) {
        for (size_t i = 0; i < N_ROWS(characters); i++)
                for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
                        struct slice character = characters[i].character;
                        struct buf text = { 0 }, expected = { 0 };
                        char escape[16], *printed;

                        buf_append_string(&text, "a ");
                        buf_append_slice(&text, character);
                        snprintf(escape, sizeof(escape), "\\u%04x", characters[i].code);
                        buf_append_string(&expected, "\"a ");
                        buf_append_string(&expected,
                                          characters[i].is_escaped ? escape : (const char *)character.data);
                        buf_append(&expected, "\"", 2);

                        printed = print_fields((enum log_format)format, "an event",
                                               (const struct log_field[]){
                                                       LOG_FIELD_TEXT("client", buf_slice(&text)), { 0 } });
                        cr_expect_not_null(strstr(printed, (const char *)expected.data), "%s: %s",
                                           characters[i].name, printed);
                        free(printed);
                        buf_deinit(&text);
                        buf_deinit(&expected);
                }
}

/*
 * All lengths of message and value, of bytes with the longest escapes: the result is always one
 * complete line.
 */
Test(log_fields, always_give_one_complete_line) {
        static char long_text[2 * LOG_LINE_MAX];

        memset(long_text, '\n', sizeof(long_text) - 1);
        for (size_t length = 0; length < sizeof(long_text) - 1; length += length < 1100 ? 7 : 401)
                for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
                        struct slice text = { (const uint8_t *)long_text, length };
                        struct log_field fields[16] = { { 0 } };
                        char *printed;

                        for (size_t i = 0; i < 15; i++)
                                fields[i] = i % 2 ? LOG_FIELD_TEXT("name", text)
                                                  : LOG_FIELD_NUMBER("n", UINT64_MAX);
                        printed = print_fields((enum log_format)format,
                                               long_text + sizeof(long_text) - 1 - length, fields);
                        cr_expect_leq(strlen(printed), LOG_LINE_MAX, "%zu", length);
                        cr_expect_eq(capture_count(printed, "\n"), 1, "%zu", length);
                        cr_expect_geq(capture_count(printed, "name"), 1, "%zu", length);
                        if (format == LOG_FORMAT_JSON)
                                cr_expect_str_eq(printed + strlen(printed) - 2, "}\n", "%zu", length);
                        free(printed);
                }
}
