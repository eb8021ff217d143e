/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "unit/capture.h"
#include "unit/table.h"

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

Test(log_text, keeps_strangers_bytes_printable) {
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

/* Each length, so that each way to end at the cut comes up. */
Test(log_text, is_cut_to_fit_and_says_so) {
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

static const struct {
        const char *name;
        enum log_level level;
} levels[] = {
        { "error", LOG_ERROR },
        { "warning", LOG_WARNING },
        { "info", LOG_INFO },
        { "debug", LOG_DEBUG },
};

Test(log_level, is_read_by_name) {
        enum log_level level = LOG_ERROR;

        for (size_t i = 0; i < N_ROWS(levels); i++) {
                cr_expect_eq(log_level_from_string(levels[i].name, &level), 0, ROW(levels, i));
                cr_expect_eq(level, levels[i].level, ROW(levels, i));
        }
        level = LOG_DEBUG;
        cr_expect_eq(log_level_from_string("", &level), -EINVAL);
        cr_expect_eq(log_level_from_string("Info", &level), -EINVAL);
        cr_expect_eq(log_level_from_string("info ", &level), -EINVAL);
        cr_expect_eq(level, LOG_DEBUG);
}

static size_t count(const char *text, const char *part) {
        size_t n = 0;

        for (; (text = strstr(text, part)); text++)
                n++;
        return n;
}

Test(log, drops_what_is_above_its_level_and_starts_at_info) {
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        log_error("one");
        log_warning("two");
        log_info("three");
        log_debug("four");
        log_set_level(LOG_ERROR);
        log_error("five");
        log_warning("six");
        log_set_level(LOG_DEBUG);
        log_debug("seven");
        printed = capture_end(&capture);

        cr_expect_eq(count(printed, "\n"), 5);
        cr_expect_not_null(strstr(printed, " level=error msg=\"one\"\n"));
        cr_expect_not_null(strstr(printed, " level=warning msg=\"two\"\n"));
        cr_expect_not_null(strstr(printed, " level=info msg=\"three\"\n"));
        cr_expect_not_null(strstr(printed, " level=error msg=\"five\"\n"));
        cr_expect_not_null(strstr(printed, " level=debug msg=\"seven\"\n"));
        free(printed);
}

Test(log, begins_a_line_with_the_time_in_utc) {
        struct capture capture;
        struct tm utc = { 0 };
        char *printed, *end;
        time_t before = time(NULL), then;

        setenv("TZ", "America/New_York", 1);
        tzset();
        capture_start(&capture, STDERR_FILENO);
        log_info("%s", "an event");
        printed = capture_end(&capture);

        end = strptime(printed, "time=%Y-%m-%dT%H:%M:%S", &utc);
        cr_assert_not_null(end, "%s", printed);
        then = timegm(&utc);
        cr_expect(then >= before && then <= before + 60, "%s", printed);
        cr_expect_eq(end[0], '.');
        cr_expect_eq(strspn(end + 1, "0123456789"), 3);
        cr_expect_str_eq(end + 4, "Z level=info msg=\"an event\"\n");
        free(printed);
}

Test(log, cuts_a_line_that_is_too_long) {
        static char text[3 * LOG_LINE_MAX];

        memset(text, 'x', sizeof(text) - 1);
        for (size_t length = LOG_LINE_MAX - 60; length < sizeof(text); length += length < 1100 ? 1 : 500) {
                struct capture capture;
                char *printed;

                capture_start(&capture, STDERR_FILENO);
                log_info("%.*s", (int)length, text);
                printed = capture_end(&capture);
                cr_expect_leq(strlen(printed), LOG_LINE_MAX, "%zu", length);
                cr_expect_eq(printed[strlen(printed) - 1], '\n', "%zu", length);
                cr_expect_eq(count(printed, "\n"), 1, "%zu", length);
                free(printed);
        }
}

static time_t second(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

#define N_LEFT_OUT 7

/* What is printed of more events than a second may have. A machine that takes longer for them gets another try. */
static char *print_flood(struct log_limit *limit) {
        for (;;) {
                time_t began = second();
                struct capture capture;
                char *printed;

                capture_start(&capture, STDERR_FILENO);
                log_tell_withheld();
                free(capture_end(&capture));

                *limit = (struct log_limit){ 0 };
                capture_start(&capture, STDERR_FILENO);
                for (int i = 0; i < LOG_LIMIT_BURST + N_LEFT_OUT; i++)
                        log_limited(limit, LOG_WARNING, "event %d.", i);
                printed = capture_end(&capture);
                if (second() == began)
                        return printed;
                free(printed);
        }
}

Test(log_limited, prints_a_few_a_second_and_says_how_many_it_left_out) {
        struct log_limit limit;
        struct capture capture;
        char *printed;

        printed = print_flood(&limit);
        cr_expect_eq(count(printed, "event"), LOG_LIMIT_BURST);
        cr_expect_eq(count(printed, "withheld"), 0);
        cr_expect(log_is_anything_withheld());
        free(printed);

        while (second() == limit.second)
                ;
        capture_start(&capture, STDERR_FILENO);
        log_limited(&limit, LOG_WARNING, "event again");
        log_limited(&limit, LOG_WARNING, "event again");
        printed = capture_end(&capture);
        cr_expect_eq(count(printed, "event again"), 2);
        cr_expect_eq(count(printed, " withheld=7\n"), 1);
        cr_expect_eq(count(printed, "\n"), 2);
        cr_expect_not(log_is_anything_withheld());
        free(printed);
}

Test(log_limited, tells_what_it_left_out_though_nothing_comes_any_more) {
        struct log_limit limit, other = { 0 };
        struct capture capture;
        char *printed;

        free(print_flood(&limit));
        log_limited(&other, LOG_WARNING, "of another limit");

        capture_start(&capture, STDERR_FILENO);
        log_tell_withheld();
        log_tell_withheld();
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "msg=\"event 10.\" withheld=6\n"), "%s", printed);
        cr_expect_eq(count(printed, "\n"), 1);
        cr_expect_not(log_is_anything_withheld());
        free(printed);
}

Test(log_limited, tells_of_one_event_without_a_count) {
        struct log_field fields[] = { LOG_FIELD_TEXT("reason", S("none")), { 0 } };
        struct log_limit limit;
        struct capture capture;
        char *printed;

        free(print_flood(&limit));
        capture_start(&capture, STDERR_FILENO);
        log_tell_withheld();
        free(capture_end(&capture));

        capture_start(&capture, STDERR_FILENO);
        log_limited_fields(&limit, LOG_WARNING, "one", fields);
        log_tell_withheld();
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "msg=\"one\" reason=none\n"), "%s", printed);
        cr_expect_eq(count(printed, "\n"), 1);
        free(printed);
}

Test(log_limited, counts_nothing_that_is_above_the_level) {
        struct log_limit limit = { 0 };
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        for (int i = 0; i < 100; i++)
                log_limited(&limit, LOG_DEBUG, "event");
        printed = capture_end(&capture);
        cr_expect_str_eq(printed, "");
        cr_expect_not(log_is_anything_withheld());
        free(printed);
}

/* What a line looks like without its time. */
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

Test(log_fields, keep_strangers_bytes_within_their_value) {
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

/* Each length of message and value, of bytes that grow most: always one line, always whole. */
Test(log_fields, fit_whatever_they_hold) {
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
                        cr_expect_eq(count(printed, "\n"), 1, "%zu", length);
                        cr_expect_geq(count(printed, "name"), 1, "%zu", length);
                        if (format == LOG_FORMAT_JSON)
                                cr_expect_str_eq(printed + strlen(printed) - 2, "}\n", "%zu", length);
                        free(printed);
                }
}

/* What the journal says of the stream that it gives a service. */
static void set_journal_stream(const char *change) {
        struct stat status;
        char stream[64];

        cr_assert_eq(fstat(STDERR_FILENO, &status), 0);
        snprintf(stream, sizeof(stream), "%ju:%ju%s", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino,
                 change);
        setenv("JOURNAL_STREAM", stream, 1);
}

Test(log, begins_a_line_with_its_priority_in_the_journal_alone) {
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        set_journal_stream("");
        log_find_journal();
        log_error("one");
        log_warning("two");
        log_info("three");
        log_set_level(LOG_DEBUG);
        log_set_format(LOG_FORMAT_JSON);
        log_debug("four");
        log_set_format(LOG_FORMAT_TEXT);
        set_journal_stream("0"); /* of whoever started us: our stderr is another one */
        log_find_journal();
        log_error("five");
        printed = capture_end(&capture);
        cr_expect_eq(strncmp(printed,
                             "<3>level=error msg=\"one\"\n"
                             "<4>level=warning msg=\"two\"\n"
                             "<6>level=info msg=\"three\"\n"
                             "<7>{\"level\":\"debug\",\"msg\":\"four\"}\n"
                             "time=",
                             strlen("<3>level=error msg=\"one\"\n"
                                    "<4>level=warning msg=\"two\"\n"
                                    "<6>level=info msg=\"three\"\n"
                                    "<7>{\"level\":\"debug\",\"msg\":\"four\"}\n"
                                    "time=")),
                     0, "%s", printed);
        free(printed);
}
