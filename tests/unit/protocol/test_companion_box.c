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

static const uint8_t nonce[COMPANION_NONCE_SIZE];

Test(box, opens_only_with_its_key) {
        uint8_t box[5 + COMPANION_BOX_EXTRA], text[sizeof(box)], other[COMPANION_KEY_SIZE] = { 0 };
        size_t length;

        companion_box_seal(S("hello"), key, nonce, box);
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

Test(box, differs_with_another_nonce_for_the_same_text) {
        uint8_t first[5 + COMPANION_BOX_EXTRA], second[sizeof(first)];
        static const uint8_t other_nonce[COMPANION_NONCE_SIZE] = { 1 };

        companion_box_seal(S("hello"), key, nonce, first);
        companion_box_seal(S("hello"), key, other_nonce, second);
        cr_expect_neq(memcmp(first, second, sizeof(first)), 0);
}

Test(box, of_a_frame_opens_only_with_its_key_and_number) {
        uint8_t box[5 + COMPANION_FRAME_EXTRA], text[sizeof(box)], other[COMPANION_KEY_SIZE] = { 0 };
        struct slice whole = { box, sizeof(box) };
        uint64_t number;
        size_t length;

        companion_frame_seal(S("hello"), key, 0x0102030405060708, box);
        cr_expect_eq(memcmp(box, "\1\2\3\4\5\6\7\10", 8), 0);
        cr_assert_eq(companion_frame_open(whole, key, text, &length, &number), 0);
        cr_expect(slice_equal((struct slice){ text, length }, S("hello")));
        cr_expect_eq(number, 0x0102030405060708);
        cr_expect_eq(companion_frame_open(whole, other, text, &length, &number), -EBADMSG);
        for (size_t n = 0; n < sizeof(box); n++)
                cr_expect_eq(companion_frame_open((struct slice){ box, n }, key, text, &length, &number),
                             -EBADMSG);
        for (size_t n = 0; n < sizeof(box); n++) {
                box[n] ^= 1;
                cr_expect_eq(companion_frame_open(whole, key, text, &length, &number), -EBADMSG);
                box[n] ^= 1;
        }
}

Test(box, of_a_frame_may_be_empty) {
        uint8_t box[COMPANION_FRAME_EXTRA], text[sizeof(box)];
        uint64_t number;
        size_t length;

        companion_frame_seal(S(""), key, 1, box);
        cr_assert_eq(companion_frame_open((struct slice){ box, sizeof(box) }, key, text, &length, &number),
                     0);
        cr_expect_eq(length, 0);
}

Test(box, has_another_key_for_frames) {
        uint8_t frame_key[COMPANION_KEY_SIZE], again[COMPANION_KEY_SIZE];

        companion_frame_key(key, frame_key);
        companion_frame_key(key, again);
        cr_expect_neq(memcmp(frame_key, key, sizeof(frame_key)), 0);
        cr_expect_eq(memcmp(frame_key, again, sizeof(frame_key)), 0);
}
