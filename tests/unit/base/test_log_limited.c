/* SPDX-License-Identifier: Apache-2.0 */

/* Rate-limited events: suppressed events are counted and reported. */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "unit/support/capture.h"

static time_t second(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

#define N_OMITTED 7

/*
 * Log more events than each of the limits prints per second; return the output. Repeat if a slow
 * machine took more than a second.
 */
static char *print_flood(struct log_limit *limits, size_t n_limits) {
        for (;;) {
                time_t began = second();
                struct capture capture;
                char *printed;

                capture_start(&capture, STDERR_FILENO);
                log_report_suppressed();
                free(capture_end(&capture));

                memset(limits, 0, n_limits * sizeof(*limits));
                capture_start(&capture, STDERR_FILENO);
                for (int i = 0; i < LOG_LIMIT_BURST + N_OMITTED; i++)
                        for (size_t k = 0; k < n_limits; k++)
                                log_limited(&limits[k], LOG_WARNING, "event %d.", i);
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

        printed = print_flood(&limit, 1);
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
        free(printed);
}

Test(log_limited, reports_suppressed_events_of_all_limits_without_a_further_event) {
        struct log_limit limits[2];
        struct capture capture;
        char *printed;

        free(print_flood(limits, 2));
        cr_expect(log_is_anything_suppressed());
        capture_start(&capture, STDERR_FILENO);
        log_report_suppressed();
        log_report_suppressed();
        printed = capture_end(&capture);
        cr_expect_not_null(strstr(printed, "msg=\"log messages were suppressed\" suppressed=14\n"), "%s",
                           printed);
        cr_expect_eq(capture_count(printed, "\n"), 1);
        cr_expect_not(log_is_anything_suppressed());
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
