/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

/* RFC 4648 section 10, and the last characters of the alphabet. */
static const struct {
        const char *name;
        struct slice bytes, text;
} pairs[] = {
        { "nothing", S(""), S("") },
        { "one byte", S("f"), S("Zg==") },
        { "two bytes", S("fo"), S("Zm8=") },
        { "three bytes", S("foo"), S("Zm9v") },
        { "six bytes", S("foobar"), S("Zm9vYmFy") },
        { "all bits", S("\xFF\xFF\xFE\x00"), S("///+AA==") },
};

Test(base64, encodes_and_decodes) {
        for (size_t i = 0; i < N_ROWS(pairs); i++) {
                CLEANUP(buf_deinit) struct buf text = { 0 }, bytes = { 0 };

                base64_append(&text, pairs[i].bytes);
                cr_expect(slice_equal(buf_slice(&text), pairs[i].text), ROW(pairs, i));
                cr_assert_eq(base64_append_decoded(&bytes, pairs[i].text), 0, ROW(pairs, i));
                cr_expect(slice_equal(buf_slice(&bytes), pairs[i].bytes), ROW(pairs, i));
        }
}

static const struct {
        const char *name;
        struct slice text;
} malformed[] = {
        { "a digit alone", S("Z") },
        { "no padding", S("Zg") },
        { "padding in the middle", S("Zg==Zg==") },
        { "padding alone", S("====") },
        { "three pads", S("Z===") },
        { "nonzero padding bits after one byte", S("Zh==") },
        { "nonzero padding bits after two bytes", S("Zm9=") },
        { "another alphabet", S("__--") },
        { "a blank", S("Zm9 ") },
        { "a NUL", S("Zm9\0") },
};

Test(base64, rejects_noncanonical_text) {
        for (size_t i = 0; i < N_ROWS(malformed); i++) {
                CLEANUP(buf_deinit) struct buf bytes = { 0 };

                cr_expect_eq(base64_append_decoded(&bytes, malformed[i].text), -EINVAL, ROW(malformed, i));
        }
}
