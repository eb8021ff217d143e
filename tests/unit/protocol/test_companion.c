/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/companion.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *text;
        uint64_t first, second;
} written[] = {
        { "0:0", 0, 0 },
        { "1:23", 1, 23 },
        { "18446744073709551615:18446744073709551615", UINT64_MAX, UINT64_MAX },
};

Test(pair, parses_what_it_formats) {
        for (size_t i = 0; i < N_ROWS(written); i++) {
                struct companion_number_pair pair =
                        companion_number_pair(written[i].first, written[i].second);
                uint64_t first, second;

                cr_expect_str_eq(pair.text, written[i].text);
                cr_expect_eq(pair.length, strlen(written[i].text));
                cr_expect_eq(companion_number_pair_read(slice_from_string(pair.text), &first, &second), 0);
                cr_expect_eq(first, written[i].first);
                cr_expect_eq(second, written[i].second);
        }
}

static const struct slice unreadable[] = {
        S(""),
        S("1"),
        S(":"),
        S("1:"),
        S(":1"),
        S("1:2:3"),
        S("a:1"),
        S("1:a"),
        S("-1:1"),
        S("1: 1"),
        S("18446744073709551616:1"),
        { 0 },
};

Test(pair, is_rejected_if_either_part_is_not_a_number) {
        for (size_t i = 0; i < N_ROWS(unreadable); i++) {
                uint64_t first = 7, second = 8;

                cr_expect_eq(companion_number_pair_read(unreadable[i], &first, &second), -EINVAL, "row %zu",
                             i);
                cr_expect_eq(first, 7);
                cr_expect_eq(second, 8);
        }
}
