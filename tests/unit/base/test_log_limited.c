/* SPDX-License-Identifier: Apache-2.0 */

/* Rate-limited events: suppressed events are counted and reported. */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "unit/support/capture.h"

#define S SLICE_LITERAL

static time_t second(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

#define N_OMITTED 7

/* Log more events than the limit per second; return the output. Repeat if a slow machine took more than a second. */
static char *print_flood(struct log_limit *limit) {
        for (;;) {
                time_t began = second();
                struct capture capture;
                char *printed;

                capture_start(&capture, STDERR_FILENO);
                log_report_suppressed();
                free(capture_end(&capture));

                *limit = (struct log_limit){ 0 };
                capture_start(&capture, STDERR_FILENO);
                for (int i = 0; i < LOG_LIMIT_BURST + N_OMITTED; i++)
                        log_limited(limit, LOG_WARNING, "event %d.", i);
                printed = capture_end(&capture);
                if (second() == began)
                        return printed;
                free(printed);
        }
}

Test(log_limited, prints_a_burst_per_second_and_counts_suppressed_events) {
        struct log_limit limit;
        struct capture capture;
        char *printed;

        printed = print_flood(&limit);
        cr_expect_eq(capture_count(printed, "event"), LOG_LIMIT_BURST);
        cr_expect_eq(capture_count(printed, "suppressed"), 0);
        cr_expect(log_is_anything_suppressed());
        free(printed);

        while (second() == limit.second)
                ;
        capture_start(&capture, STDERR_FILENO);
        log_limited(&limit, LOG_WARNING, "event again");
        log_limited(&limit, LOG_WARNING, "event again");
        printed = capture_end(&capture);
        cr_expect_eq(capture_count(printed, "event again"), 2);
        cr_expect_eq(capture_count(printed, " suppressed=7\n"), 1);
        cr_expect_eq(capture_count(printed, "\n"), 2);
        cr_expect_not(log_is_anything_suppressed());
        free(printed);
}

Test(log_limited, reports_suppressed_events_without_a_further_event) {
        struct log_limit limit, other = { 0 };
        struct capture capture;
        char *printed;

        free(print_flood(&limit));
        log_limited(&other, LOG_WARNING, "event of another limit");

        capture_start(&capture, STDERR_FILENO);
        log_report_suppressed();
        log_report_suppressed();
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "msg=\"event 10.\" suppressed=6\n"), "%s", printed);
        cr_expect_eq(capture_count(printed, "\n"), 1);
        cr_expect_not(log_is_anything_suppressed());
        free(printed);
}

Test(log_limited, reports_one_suppressed_event_without_a_count) {
        struct log_field fields[] = { LOG_FIELD_TEXT("reason", S("none")), { 0 } };
        struct log_limit limit;
        struct capture capture;
        char *printed;

        free(print_flood(&limit));
        capture_start(&capture, STDERR_FILENO);
        log_report_suppressed();
        free(capture_end(&capture));

        capture_start(&capture, STDERR_FILENO);
        log_limited_fields(&limit, LOG_WARNING, "one", fields);
        log_report_suppressed();
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "msg=\"one\" reason=none\n"), "%s", printed);
        cr_expect_eq(capture_count(printed, "\n"), 1);
        free(printed);
}

Test(log_limited, ignores_events_above_the_level) {
        struct log_limit limit = { 0 };
        struct capture capture;
        char *printed;

        capture_start(&capture, STDERR_FILENO);
        for (int i = 0; i < 100; i++)
                log_limited(&limit, LOG_DEBUG, "event");
        printed = capture_end(&capture);
        cr_expect_str_eq(printed, "");
        cr_expect_not(log_is_anything_suppressed());
        free(printed);
}
