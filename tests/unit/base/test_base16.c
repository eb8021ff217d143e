/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base16.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "unit/support/table.h"

#define S SLICE_LITERAL

static const struct {
        const char *name;
        struct slice bytes, text;
} encoded[] = {
        /* RFC 4648 section 10 */
        { "nothing", S(""), S("") },
        { "f", S("f"), S("66") },
        { "fo", S("fo"), S("666F") },
        { "foo", S("foo"), S("666F6F") },
        { "foob", S("foob"), S("666F6F62") },
        { "fooba", S("fooba"), S("666F6F6261") },
        { "foobar", S("foobar"), S("666F6F626172") },
        { "every digit", S("\x01\x23\x45\x67\x89\xAB\xCD\xEF"), S("0123456789ABCDEF") },
        { "the ends", S("\0\xFF"), S("00FF") },
};

Test(base16, encodes_in_upper_case_and_decodes) {
        for (size_t i = 0; i < N_ROWS(encoded); i++) {
                struct buf text = { 0 }, bytes = { 0 };

                base16_append(&text, encoded[i].bytes);
                cr_expect(slice_equal(buf_slice(&text), encoded[i].text), ROW(encoded, i));
                for (size_t j = 0; j < encoded[i].bytes.length; j++)
                        for (int byte = 0; byte < 256; byte++)
                                cr_expect_eq(base16_is_byte((const char *)text.data + 2 * j, (uint8_t)byte),
                                             byte == encoded[i].bytes.data[j], ROW(encoded, i));
                cr_assert_eq(base16_append_decoded(&bytes, encoded[i].text), 0, ROW(encoded, i));
                cr_expect(slice_equal(buf_slice(&bytes), encoded[i].bytes), ROW(encoded, i));
                buf_deinit(&text);
                buf_deinit(&bytes);
        }
}

static const struct {
        const char *name;
        struct slice text;
} undecodable[] = {
        { "lower case", S("6f") },
        { "one digit", S("6") },
        { "an odd number of digits", S("666") },
        { "a letter past F", S("6G") },
        { "a blank", S("6 ") },
        { "an invalid first digit", S("x6") },
        { "NUL", S("\0\0") },
        { "NUL after a digit", S("6\0") },
        { "a prefix", S("0x66") },
};

Test(base16, rejects_invalid_text) {
        for (size_t i = 0; i < N_ROWS(undecodable); i++) {
                struct buf bytes = { 0 };

                cr_expect_eq(base16_append_decoded(&bytes, undecodable[i].text), -EINVAL,
                             ROW(undecodable, i));
                buf_deinit(&bytes);
        }
}
