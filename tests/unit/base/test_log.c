/* SPDX-License-Identifier: Apache-2.0 */

/* The beginning of a line, and truncation. */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_line.h"
#include "unit/support/capture.h"

static char printed_message[64];

static void keep_message(const char *message) {
        snprintf(printed_message, sizeof(printed_message), "%s", message);
}

Test(log, passes_messages_to_the_printer_instead_of_printing) {
        struct log_limit limit = { 0 };
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        log_set_printer(keep_message);
        log_error("one \x1b %d", 1);
        cr_expect_str_eq(printed_message, "one \x1b 1");
        log_debug("two");
        cr_expect_str_eq(printed_message, "one \x1b 1");
        log_limited(&limit, LOG_ERROR, "three");
        cr_expect_str_eq(printed_message, "three");
        printed = capture_end(&capture);

        cr_expect_str_empty(printed);
        free(printed);
}

Test(log, drops_events_above_its_level_and_defaults_to_info) {
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

        cr_expect_eq(capture_count(printed, "\n"), 5);
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

Test(log, truncates_a_long_line) {
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
                cr_expect_eq(capture_count(printed, "\n"), 1, "%zu", length);
                free(printed);
        }
}

/* Set JOURNAL_STREAM as systemd does for a service. */
static void set_journal_stream(const char *change) {
        struct stat status;
        char stream[64];

        cr_assert_eq(fstat(STDERR_FILENO, &status), 0);
        snprintf(stream, sizeof(stream), "%ju:%ju%s", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino,
                 change);
        setenv("JOURNAL_STREAM", stream, 1);
}

Test(log, begins_a_line_with_its_priority_only_in_the_journal) {
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        set_journal_stream("");
        log_detect_journal();
        log_error("one");
        log_warning("two");
        log_info("three");
        log_set_level(LOG_DEBUG);
        log_set_format(LOG_FORMAT_JSON);
        log_debug("four");
        log_set_format(LOG_FORMAT_TEXT);
        set_journal_stream("0"); /* inherited from a service with another stderr */
        log_detect_journal();
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
