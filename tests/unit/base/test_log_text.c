/* SPDX-License-Identifier: Apache-2.0 */

/* Untrusted bytes in the log: in a message and in fields. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
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
        { "UTF-8 as it stands", S("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
          "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80" },
        { "a newline", S("a\nb"), "a\\x0Ab" },
        { "a carriage return", S("a\rb"), "a\\x0Db" },
        { "an escape sequence", S("\x1B[2J"), "\\x1B[2J" },
        { "NUL", S("a\0b"), "a\\x00b" },
        { "DEL", S("\x7F"), "\\x7F" },
        { "the byte before the first plain one", S("\x1F"), "\\x1F" },
        { "the first and the last plain byte", S(" ~"), " ~" },
        { "a quote", S("\"quoted\""), "\\x22quoted\\x22" },
        { "a backslash, or escapes could be forged", S("\\x0A"), "\\x5Cx0A" },
        { "a format is no format", S("%s%n"), "%s%n" },
        { "not UTF-8", S("a\xFFz"), "a\\xFFz" },
        { "not UTF-8 anywhere, so nothing is taken for it", S("\xC3\xA4\xFF"), "\\xC3\\xA4\\xFF" },
        { "control characters of two bytes",
          S("a\xC2\x85\xC2\x9B"
            "b"),
          "a\\xC2\\x85\\xC2\\x9Bb" },
        { "the first that is none of them", S("\xC2\xA0"), "\xC2\xA0" },
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
        { "what would be a field", S("a level=error"), "\"a level=error\"", "\"a level=error\"" },
        { "an equals sign", S("a=b"), "\"a=b\"", "\"a=b\"" },
        { "a quote", S("\""), "\"\\\"\"", "\"\\\"\"" },
        { "a backslash", S("\\"), "\"\\\\\"", "\"\\\\\"" },
        { "a line's end", S("a\nb"), "\"a\\nb\"", "\"a\\nb\"" },
        { "an escape sequence", S("\x1B[2J"), "\"\\u001B[2J\"", "\"\\u001B[2J\"" },
        { "NUL", S("a\0b"), "\"a\\u0000b\"", "\"a\\u0000b\"" },
        { "DEL", S("\x7F"), "\"\\u007F\"", "\"\\u007F\"" },
        { "a control character of two bytes", S("\xC2\x9B"), "\"\\u009B\"", "\"\\u009B\"" },
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

/* All lengths of message and value, of bytes with the longest escapes: the result is always one complete line. */
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
