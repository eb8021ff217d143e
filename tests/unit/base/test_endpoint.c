/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/endpoint.h"
#include "unit/support/table.h"

#define S            SLICE_LITERAL
#define DEFAULT_PORT 1883
#define N_ENDPOINTS  3
#define TEN          "0123456789"
#define TWO_FIFTY                                                                                           \
        TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
        const char *name;
        struct slice text;
        size_t n_endpoints;
        struct {
                const char *host;
                uint16_t port;
                const char *text;
        } endpoints[N_ENDPOINTS];
} lists[] = {
        { "a name", S("broker"), 1, { { "broker", 1883, "broker:1883" } } },
        { "a name and a port", S("broker:8883"), 1, { { "broker", 8883, "broker:8883" } } },
        { "an IPv4 address", S("127.0.0.1"), 1, { { "127.0.0.1", 1883, "127.0.0.1:1883" } } },
        { "an IPv4 address and a port", S("127.0.0.1:1"), 1, { { "127.0.0.1", 1, "127.0.0.1:1" } } },
        { "a bare IPv6 address", S("fe80::1"), 1, { { "fe80::1", 1883, "[fe80::1]:1883" } } },
        { "the shortest IPv6 address", S("::"), 1, { { "::", 1883, "[::]:1883" } } },
        { "an IPv6 address in brackets", S("[::1]"), 1, { { "::1", 1883, "[::1]:1883" } } },
        { "an IPv6 address and a port", S("[::1]:65535"), 1, { { "::1", 65535, "[::1]:65535" } } },
        { "a socket", S("/run/broker.sock"), 1, { { "/run/broker.sock", 0, "/run/broker.sock" } } },
        { "a socket with a colon in its name", S("/run/a:1"), 1, { { "/run/a:1", 0, "/run/a:1" } } },
        { "several",
          S("a,[::1]:2,/run/s"),
          3,
          { { "a", 1883, "a:1883" }, { "::1", 2, "[::1]:2" }, { "/run/s", 0, "/run/s" } } },
        { "blanks around the endpoints",
          S(" a , [::1]:2 ,  /run/a b"),
          3,
          { { "a", 1883, "a:1883" }, { "::1", 2, "[::1]:2" }, { "/run/a b", 0, "/run/a b" } } },
        { "the same endpoint twice", S("a,a"), 2, { { "a", 1883, "a:1883" }, { "a", 1883, "a:1883" } } },
        { "a port with leading zeros", S("a:0001"), 1, { { "a", 1, "a:1" } } },
};

Test(endpoints, are_parsed_in_order) {
        for (size_t i = 0; i < N_ROWS(lists); i++) {
                struct endpoint *endpoints;
                size_t n_endpoints;

                cr_assert_eq(endpoints_parse(lists[i].text, DEFAULT_PORT, &endpoints, &n_endpoints), 0,
                             ROW(lists, i));
                cr_assert_eq(n_endpoints, lists[i].n_endpoints, ROW(lists, i));
                for (size_t j = 0; j < n_endpoints; j++) {
                        cr_expect_str_eq(endpoints[j].host, lists[i].endpoints[j].host, ROW(lists, i));
                        cr_expect_eq(endpoints[j].port, lists[i].endpoints[j].port, ROW(lists, i));
                        cr_expect_str_eq(endpoint_text(&endpoints[j]).text, lists[i].endpoints[j].text,
                                         ROW(lists, i));
                }
                endpoints_free(endpoints, n_endpoints);
        }
}

static const struct {
        const char *name;
        struct slice text;
} wrong[] = {
        { "nothing", S("") },
        { "a comma", S(",") },
        { "a blank", S(" ") },
        { "a blank between commas", S("a, ,b") },
        { "a blank in a name", S("a # b") },
        { "a blank before a port", S("a :1") },
        { "a name in quotes", S("\"a\"") },
        { "a tab", S("a\t") },
        { "nothing behind a comma", S("a,") },
        { "nothing before a comma", S(",a") },
        { "nothing between", S("a,,b") },
        { "no host", S(":1883") },
        { "an empty port", S("a:") },
        { "port 0", S("a:0") },
        { "a port above 65535", S("a:65536") },
        { "a port that is not a number", S("a:mqtt") },
        { "a negative port", S("a:-1") },
        { "a bracket that is not closed", S("[::1") },
        { "nothing in brackets", S("[]") },
        { "more behind the bracket", S("[::1]x") },
        { "an empty port behind the bracket", S("[::1]:") },
        { "a bracket in brackets", S("[[::1]:1") },
        { "a bracket that was not opened", S("::1]") },
        { "a path in brackets", S("[/run/s]") },
        { "a path that does not begin with a slash", S("run/s") },
        { "an invalid endpoint after a valid one", S("a,b:0") },
        { "a host that is too long", S(TWO_FIFTY "012345") },
};

Test(endpoints, are_rejected_if_one_is_invalid) {
        for (size_t i = 0; i < N_ROWS(wrong); i++) {
                struct endpoint *endpoints = NULL;
                size_t n_endpoints = 99;

                cr_expect_eq(endpoints_parse(wrong[i].text, DEFAULT_PORT, &endpoints, &n_endpoints), -EINVAL,
                             ROW(wrong, i));
                cr_expect_null(endpoints, ROW(wrong, i));
                cr_expect_eq(n_endpoints, 99, ROW(wrong, i));
        }
}

Test(endpoints, free_accepts_null) {
        endpoints_free(NULL, 0);
}

Test(endpoint_text, fits_the_longest_host) {
        struct endpoint *endpoints;
        size_t n_endpoints;

        cr_assert_eq(endpoints_parse(S(TWO_FIFTY "01234:65535"), DEFAULT_PORT, &endpoints, &n_endpoints), 0);
        cr_expect_str_eq(endpoint_text(&endpoints[0]).text, TWO_FIFTY "01234:65535");
        endpoints_free(endpoints, n_endpoints);
}
