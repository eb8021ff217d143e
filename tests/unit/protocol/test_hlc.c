/* SPDX-License-Identifier: Apache-2.0 */

/* Timestamps of PROTOCOL.md "Hybrid logical clocks": parse, format, compare. */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/hlc.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice text;
        int64_t wall_ms;
        uint64_t counter;
        struct slice node;
} readings[] = {
        { "unpadded", S("1696374425000:0:Client1"), 1696374425000, 0, S("Client1") },
        { "padded", S("001696374425000:00000:Client1"), 1696374425000, 0, S("Client1") },
        { "one digit each", S("1:2:n"), 1, 2, S("n") },
        { "all zeros", S("0:0:n"), 0, 0, S("n") },
        { "more leading zeros than digits", S("00000000000000000000000001:000000000000000000000002:n"), 1, 2,
          S("n") },
        { "the last wall clock", S("9223372036854775807:0:n"), INT64_MAX, 0, S("n") },
        { "the last counter", S("1:18446744073709551615:n"), 1, UINT64_MAX, S("n") },
        { "a node of UTF-8", S("1:2:\xC3\xA4\xF0\x9F\x98\x80"), 1, 2, S("\xC3\xA4\xF0\x9F\x98\x80") },
        { "a node of blanks", S("1:2: "), 1, 2, S(" ") },
        { "a node of digits", S("1:2:3"), 1, 2, S("3") },
        { "the neighbours of control characters", S("1:2:~\xC2\xA0"), 1, 2, S("~\xC2\xA0") },
        { "the bytes of a noncharacter in two characters", S("1:2:\xEF\xAF\xBF\xDF\xBE"), 1, 2,
          S("\xEF\xAF\xBF\xDF\xBE") },
        { "the neighbours of noncharacters",
          S("1:2:\xEF\xB7\x8F\xEF\xB7\xB0\xEF\xBF\xBD\xF0\x9F\xBF\xBD\xE4\xBF\xBF"), 1, 2,
          S("\xEF\xB7\x8F\xEF\xB7\xB0\xEF\xBF\xBD\xF0\x9F\xBF\xBD\xE4\xBF\xBF") },
};

Test(hlc, is_parsed_padded_or_not) {
        for (size_t i = 0; i < N_ROWS(readings); i++) {
                struct hlc hlc;

                cr_assert_eq(hlc_parse(readings[i].text, &hlc), 0, ROW(readings, i));
                cr_expect_eq(hlc.wall_ms, readings[i].wall_ms, ROW(readings, i));
                cr_expect_eq(hlc.counter, readings[i].counter, ROW(readings, i));
                cr_expect(slice_equal(hlc.node, readings[i].node), ROW(readings, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
} malformed[] = {
        { "nothing", S("") },
        { "absent", { NULL, 0 } },
        { "one part", S("1696374425000") },
        { "two parts", S("1696374425000:0") },
        { "four parts", S("1:2:n:m") },
        { "a separator too many", S("1:2:n:") },
        { "separators alone", S("::") },
        { "no wall clock", S(":0:n") },
        { "no counter", S("1::n") },
        { "no node", S("1:2:") },
        { "a plus before the wall clock", S("+1:2:n") },
        { "a minus before the wall clock", S("-1:2:n") },
        { "a plus before the counter", S("1:+2:n") },
        { "a minus before the counter", S("1:-2:n") },
        { "a blank before the wall clock", S(" 1:2:n") },
        { "a blank after the wall clock", S("1 :2:n") },
        { "a blank before the counter", S("1: 2:n") },
        { "a blank after the counter", S("1:2 :n") },
        { "a letter in the wall clock", S("1x:2:n") },
        { "a letter in the counter", S("1:0x2:n") },
        { "the wall clock past 2^63-1", S("9223372036854775808:0:n") },
        { "the wall clock past 2^64", S("18446744073709551616:0:n") },
        { "the counter past 2^64-1", S("1:18446744073709551616:n") },
        { "a node that is not UTF-8", S("1:2:\xFF") },
        { "a node that is cut", S("1:2:a\xC3") },
        { "NUL in the node", S("1:2:a\0b") },
        { "the last control character of ASCII in the node", S("1:2:a\x1F") },
        { "DEL in the node", S("1:2:\x7F") },
        { "U+0080 in the node", S("1:2:\xC2\x80") },
        { "U+009F in the node", S("1:2:\xC2\x9F") },
        { "U+FDD0 in the node", S("1:2:\xEF\xB7\x90") },
        { "U+FDEF in the node", S("1:2:\xEF\xB7\xAF") },
        { "U+FFFE in the node", S("1:2:a\xEF\xBF\xBE"
                                  "b") },
        { "U+FFFF in the node", S("1:2:\xEF\xBF\xBF") },
        { "U+1FFFE in the node", S("1:2:\xF0\x9F\xBF\xBE") },
        { "U+10FFFF in the node", S("1:2:\xF4\x8F\xBF\xBF") },
};

Test(hlc, rejects_malformed_text) {
        for (size_t i = 0; i < N_ROWS(malformed); i++) {
                struct hlc hlc = { .wall_ms = 99 };

                cr_expect_eq(hlc_parse(malformed[i].text, &hlc), -EINVAL, ROW(malformed, i));
                cr_expect_eq(hlc.wall_ms, 99, ROW(malformed, i));
        }
}

static const struct {
        const char *name;
        struct hlc hlc;
        struct slice padded, unpadded;
} written[] = {
        { "the example of PROTOCOL.md",
          { 1696374425000, 0, S("Client1") },
          S("001696374425000:00000:Client1"),
          S("1696374425000:0:Client1") },
        { "zeros", { 0, 0, S("n") }, S("000000000000000:00000:n"), S("0:0:n") },
        { "a counter that fills its digits",
          { 1, 99999, S("n") },
          S("000000000000001:99999:n"),
          S("1:99999:n") },
        { "a counter longer than its padding",
          { 1, 100000, S("n") },
          S("000000000000001:100000:n"),
          S("1:100000:n") },
        { "the maxima",
          { INT64_MAX, UINT64_MAX, S("n") },
          S("9223372036854775807:18446744073709551615:n"),
          S("9223372036854775807:18446744073709551615:n") },
};

Test(hlc, is_formatted_in_both_styles_and_parses_back) {
        for (size_t i = 0; i < N_ROWS(written); i++) {
                struct buf padded = { 0 }, unpadded = { 0 };
                struct hlc hlc;

                hlc_append(&padded, written[i].hlc, HLC_PADDED);
                hlc_append(&unpadded, written[i].hlc, HLC_UNPADDED);
                cr_expect(slice_equal(buf_slice(&padded), written[i].padded), ROW(written, i));
                cr_expect(slice_equal(buf_slice(&unpadded), written[i].unpadded), ROW(written, i));

                cr_assert_eq(hlc_parse(buf_slice(&padded), &hlc), 0, ROW(written, i));
                cr_expect_eq(hlc_compare(hlc, written[i].hlc), 0, ROW(written, i));
                buf_deinit(&padded);
                buf_deinit(&unpadded);
        }
}

static const struct {
        const char *name;
        struct hlc a, b;
        int order;
} compared[] = {
        { "the same", { 5, 6, S("n") }, { 5, 6, S("n") }, 0 },
        { "by wall clock", { 5, 6, S("n") }, { 6, 6, S("n") }, -1 },
        { "by wall clock first", { 5, 9, S("z") }, { 6, 0, S("a") }, -1 },
        { "by wall clock over 32 bits", { INT64_MAX, 0, S("n") }, { 1, 0, S("n") }, 1 },
        { "by counter", { 5, 6, S("n") }, { 5, 7, S("n") }, -1 },
        { "by counter before node", { 5, 6, S("z") }, { 5, 7, S("a") }, -1 },
        { "by counter over 63 bits", { 5, UINT64_MAX, S("n") }, { 5, 1, S("n") }, 1 },
        { "by node", { 5, 6, S("a") }, { 5, 6, S("b") }, -1 },
        { "by node as bytes: upper case first", { 5, 6, S("B") }, { 5, 6, S("a") }, -1 },
        { "by node as unsigned bytes", { 5, 6, S("z") }, { 5, 6, S("\xC3\xA4") }, -1 },
        { "the shorter node first", { 5, 6, S("n") }, { 5, 6, S("n1") }, -1 },
};

Test(hlc, compares_by_wall_clock_then_counter_then_node) {
        for (size_t i = 0; i < N_ROWS(compared); i++) {
                int forth = hlc_compare(compared[i].a, compared[i].b);
                int back = hlc_compare(compared[i].b, compared[i].a);

                cr_expect_eq(sign(forth), compared[i].order, ROW(compared, i));
                cr_expect_eq(sign(back), -compared[i].order, ROW(compared, i));
        }
}

static const struct {
        const char *name;
        struct slice node;
        bool valid;
} nodes[] = {
        { "our own", S("StateStore"), true }, { "one byte", S("n"), true },
        { "UTF-8", S("\xE2\x82\xAC"), true }, { "a blank", S(" "), true },
        { "nothing", S(""), false },          { "absent", { NULL, 0 }, false },
        { "a separator", S("a:b"), false },   { "a separator at the end", S("a:"), false },
        { "not UTF-8", S("a\xFF"), false },
};

Test(hlc, rejects_an_empty_node_and_one_with_a_separator) {
        for (size_t i = 0; i < N_ROWS(nodes); i++)
                cr_expect_eq(hlc_node_is_valid(nodes[i].node), nodes[i].valid, ROW(nodes, i));
}
