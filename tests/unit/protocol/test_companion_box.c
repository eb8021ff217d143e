/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/companion_box.h"

#define S SLICE_LITERAL

static const uint8_t key[COMPANION_KEY_SIZE] = "0123456789abcdef0123456789abcde";

static void setup(void) {
        cr_assert_eq(companion_box_init(), 0);
}

TestSuite(box, .init = setup);

Test(box, opens_only_with_its_key) {
        uint8_t box[5 + COMPANION_BOX_EXTRA], text[sizeof(box)], other[COMPANION_KEY_SIZE] = { 0 };
        size_t length;

        companion_box_seal(S("hello"), key, box);
        cr_assert_eq(companion_box_open((struct slice){ box, sizeof(box) }, key, text, &length), 0);
        cr_expect(slice_equal((struct slice){ text, length }, S("hello")));
        cr_expect_eq(companion_box_open((struct slice){ box, sizeof(box) }, other, text, &length), -EBADMSG);
        for (size_t n = 0; n < sizeof(box); n++)
                cr_expect_eq(companion_box_open((struct slice){ box, n }, key, text, &length), -EBADMSG);
        for (size_t n = 0; n < sizeof(box); n++) {
                box[n] ^= 1;
                cr_expect_eq(companion_box_open((struct slice){ box, sizeof(box) }, key, text, &length),
                             -EBADMSG);
                box[n] ^= 1;
        }
}

Test(box, has_another_nonce_each_time) {
        uint8_t first[5 + COMPANION_BOX_EXTRA], second[sizeof(first)];

        companion_box_seal(S("hello"), key, first);
        companion_box_seal(S("hello"), key, second);
        cr_expect_neq(memcmp(first, second, crypto_secretbox_NONCEBYTES), 0);
}

Test(box, may_be_empty) {
        uint8_t box[COMPANION_BOX_EXTRA], text[sizeof(box)];
        size_t length;

        companion_box_seal(S(""), key, box);
        cr_assert_eq(companion_box_open((struct slice){ box, sizeof(box) }, key, text, &length), 0);
        cr_expect_eq(length, 0);
}

Test(box, has_another_key_for_frames) {
        uint8_t frame_key[COMPANION_KEY_SIZE], again[COMPANION_KEY_SIZE];

        companion_frame_key(key, frame_key);
        companion_frame_key(key, again);
        cr_expect_neq(memcmp(frame_key, key, sizeof(frame_key)), 0);
        cr_expect_eq(memcmp(frame_key, again, sizeof(frame_key)), 0);
}
