/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>

#include "base/random.h"

/* getrandom() may return fewer bytes than requested above 256 bytes. */
#define LENGTH 100000

Test(random, fills_every_part_of_the_memory) {
        static const unsigned char zeros[16];
        static unsigned char bytes[LENGTH];

        random_fill(bytes, sizeof(bytes));
        for (size_t i = 0; i + sizeof(zeros) <= LENGTH; i += sizeof(zeros))
                cr_assert_neq(memcmp(bytes + i, zeros, sizeof(zeros)), 0, "16 zeros at %zu", i);
}

Test(random, writes_nothing_after_the_memory) {
        unsigned char bytes[8] = { 0 };

        for (size_t length = 0; length < sizeof(bytes); length++) {
                random_fill(bytes, length);
                for (size_t i = length; i < sizeof(bytes); i++)
                        cr_assert_eq(bytes[i], 0, "length %zu, byte %zu", length, i);
        }
}

Test(random, gives_different_bytes_each_time) {
        unsigned char first[16], second[16];

        random_fill(first, sizeof(first));
        random_fill(second, sizeof(second));
        cr_expect_neq(memcmp(first, second, sizeof(first)), 0);
}

Test(random, draws_hexadecimal_digits) {
        char text[1000], other[33], one[2] = "xy", none[1] = "x";

        random_hex(text, sizeof(text));
        cr_assert_eq(strlen(text), sizeof(text) - 1);
        cr_expect_eq(strspn(text, "0123456789abcdef"), sizeof(text) - 1);
        for (const char *digit = "0123456789abcdef"; *digit != '\0'; digit++)
                cr_expect_not_null(strchr(text, *digit), "%c", *digit);

        random_hex(other, sizeof(other));
        cr_expect_neq(strncmp(text, other, sizeof(other) - 1), 0);
        random_hex(one, sizeof(one));
        cr_expect_eq(strlen(one), 1);
        random_hex(none, sizeof(none));
        cr_expect_str_empty(none);
}
