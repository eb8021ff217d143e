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

#define DIGITS "0123456789abcdef0123456789abcdef"

static const struct {
        const char *name;
        struct slice client_id;
        bool is_random;
} client_ids[] = {
        { "random", S("statestored-" DIGITS), true },
        { "the default", S("statestored"), false },
        { "no digits", S("statestored-"), false },
        { "another prefix", S("statestore--" DIGITS), false },
        { "a digit is missing", S("statestored-0123456789abcdef0123456789abcde"), false },
        { "a digit too many", S("statestored-" DIGITS "0"), false },
        { "an upper-case digit", S("statestored-0123456789abcdef0123456789abcdeF"), false },
        { "no digit at the beginning", S("statestored-g123456789abcdef0123456789abcdef"), false },
        { "a NUL", S("statestored-0123456789abcdef0123456789abcde\0"), false },
        { "absent", { 0 }, false },
};

Test(client_id, is_random_if_it_has_the_prefix_and_32_digits) {
        for (size_t i = 0; i < N_ROWS(client_ids); i++)
                cr_expect_eq(companion_client_id_is_random(client_ids[i].client_id), client_ids[i].is_random,
                             ROW(client_ids, i));
}
