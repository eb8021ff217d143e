/* SPDX-License-Identifier: Apache-2.0 */

/* The parser for the text format of Prometheus, and the report of stat. */

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "ctl/report.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static struct samples samples;
static struct buf text;

static void teardown(void) {
        samples_deinit(&samples);
        buf_deinit(&text);
}

TestSuite(samples, .fini = teardown);
TestSuite(report, .fini = teardown);

static int read_into(struct samples *read, struct slice page) {
        buf_reset(&read->text);
        buf_append_slice(&read->text, page);
        return samples_read(read);
}

Test(samples, are_read_with_their_labels) {
        cr_assert_eq(read_into(&samples, S("# HELP a What it is.\n# TYPE a counter\n"
                                           "a{x=\"1\",y=\"}\\\"{\"} 3\n"
                                           "a{x=\"2\"} 4.5 1696374425000\n"
                                           "\n"
                                           "b -1e3")),
                     0);
        cr_expect_eq(samples.n, 3);
        cr_expect_eq(samples_sum(&samples, "a", NULL), 7.5);
        cr_expect_eq(samples_sum(&samples, "a", "x=\"2\""), 4.5);
        cr_expect_eq(samples_sum(&samples, "b", NULL), -1000);
        cr_expect(isnan(samples_sum(&samples, "a", "x=\"3\"")));
        cr_expect(isnan(samples_sum(&samples, "b", "x")));
        cr_expect(isnan(samples_sum(&samples, "c", NULL)));
        cr_expect(slice_equal(samples_label(&samples, "a", "x"), S("1")));
        cr_expect_eq(samples_label(&samples, "b", "x").length, 0);
}

static const struct {
        const char *name;
        struct slice page;
} wrong_pages[] = {
        { "a page of HTML", S("<html>hello</html>\n") },
        { "no value", S("a\n") },
        { "a blank and no value", S("a \n") },
        { "no number", S("a x\n") },
        { "a number and more", S("a 1x\n") },
        { "two blanks", S("a  1\n") },
        { "no name", S(" 1\n") },
        { "labels without a name", S("{x=\"1\"} 1\n") },
        { "labels without a closing brace", S("a{x=\"1\" 1\n") },
        { "labels that end within quotes", S("a{x=\"1} 1\n") },
        { "labels that end with an escape", S("a{x=\"1\\") },
        { "labels and no blank", S("a{x=\"1\"}1\n") },
        { "a NUL", S("a 1\0\n") },
        { "a number that is too long",
          S("a 1111111111111111111111111111111111111111111111111111111111111111111111111\n") },
        { "a valid line, then a malformed one", S("a 1\nb\n") },
        { "binary", S("\xFF\xFE\0\x01\n") },
};

Test(samples, of_malformed_text_are_an_error) {
        for (size_t i = 0; i < N_ROWS(wrong_pages); i++) {
                cr_expect_eq(read_into(&samples, wrong_pages[i].page), -EBADMSG, ROW(wrong_pages, i));
                cr_expect_eq(samples.n, 0, ROW(wrong_pages, i));
        }
        cr_expect_eq(read_into(&samples, S("")), 0);
        cr_expect_eq(samples.n, 0);
}

/* Cut a page at each length. ASan reports reads beyond its end. */
Test(samples, may_end_anywhere) {
        static const char page[] = "# HELP a b\na{x=\"1\\\"\",y=\"2\"} 3.5\nb 4 5\n";

        for (size_t length = 0; length < sizeof(page); length++) {
                struct samples cut = { 0 };
                int r = read_into(&cut, (struct slice){ (const uint8_t *)page, length });

                cr_expect(r == 0 || r == -EBADMSG, "%zu", length);
                samples_deinit(&cut);
        }
}

#define BUCKETS(a, b, c)                                                                                    \
        S("h_bucket{le=\"0.001\"} " a "\nh_bucket{le=\"0.002\"} " b "\nh_bucket{le=\"+Inf\"} " c "\n")

static bool is_near(double a, double b) {
        return fabs(a - b) < 1e-9;
}

Test(samples, give_quantiles) {
        cr_assert_eq(read_into(&samples, BUCKETS("10", "20", "20")), 0);
        cr_expect(is_near(samples_quantile(&samples, "h_bucket", 0.5), 0.001));
        cr_expect(is_near(samples_quantile(&samples, "h_bucket", 0.75), 0.0015));
        cr_expect(is_near(samples_quantile(&samples, "h_bucket", 0.25), 0.0005));

        cr_expect(isnan(samples_quantile(&samples, "other", 0.5)));

        cr_assert_eq(read_into(&samples, BUCKETS("0", "0", "7")), 0);
        cr_expect(is_near(samples_quantile(&samples, "h_bucket", 0.99), 0.002), "the largest finite bound");
}

static const char page[] = "statestore_build_info{version=\"1.2.3\\x1B\"} 1\n"
                           "process_start_time_seconds 1000\n"
                           "statestore_broker_connected 1\n"
                           "statestore_serving 1\n"
                           "statestore_storage_failing 1\n"
                           "statestore_broker_ability{ability=\"verified_identity\"} 1\n"
                           "statestore_requests_total{verb=\"set\",outcome=\"done\"} 1234567\n"
                           "statestore_requests_total{verb=\"set\",outcome=\"quota_exceeded\"} 10\n"
                           "statestore_requests_total{verb=\"set\",outcome=\"condition_not_met\"} 5\n"
                           "statestore_bytes 3355443\n"
                           "statestore_bytes_limit 1073741824\n";

static const char *report(double now_s) {
        buf_reset(&text);
        report_append(&text, &samples, now_s);
        buf_append(&text, "", 1);
        return (const char *)text.data;
}

Test(report, prints_the_state_then_totals) {
        const char *printed;

        cr_assert_eq(read_into(&samples, slice_from_string(page)), 0);
        printed = report(1000 + 2 * 86400 + 3 * 3600);
        cr_expect_not_null(strstr(printed, "up 2.1 d: COMMITS FAIL; serving; identity verified, "
                                           "delivery by subscription, presence guessed\n"),
                           "%s", printed);
        cr_expect_not_null(strstr(printed, " 1,234,582\n"), "%s", printed);
        cr_expect_not_null(strstr(printed, " 10\n"), "%s", printed);
        cr_expect_not_null(strstr(printed, "3.2 MiB of 1.0 GiB\n"), "%s", printed);
        cr_expect_null(strchr(printed, '\x1B'));
}

Test(report, begins_with_the_missing_broker) {
        cr_assert_eq(read_into(&samples,
                               S("statestore_build_info{version=\"1\"} 1\nstatestore_broker_connected 0\n")),
                     0);
        cr_expect_eq(strncmp(report(0), "statestored 1, up 0.0 us: NOT CONNECTED to a broker\n", 52), 0,
                     "%s", (const char *)text.data);
}

Test(report, accepts_extreme_numbers) {
        cr_assert_eq(read_into(&samples, S("statestore_requests_total 1e300\nstatestore_keys nan\n"
                                           "statestore_bytes -inf\nprocess_start_time_seconds -1e300\n"
                                           "statestore_dropped_total -5000\n"
                                           "statestore_request_seconds_bucket{le=\"x\"} 5\n")),
                     0);
        report(1e300);
        buf_reset(&text);
        report_append_json(&text, &samples, NAN);
        cr_expect_not(buf_failed(&text));
}
