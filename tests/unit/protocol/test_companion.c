/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "protocol/companion.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

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
