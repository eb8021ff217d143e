/* SPDX-License-Identifier: Apache-2.0 */

#include <criterion/criterion.h>
#include <errno.h>

#include "protocol/companion_frame.h"
#include "unit/support/table.h"

#define S SLICE_LITERAL

#define SEQUENCE "\x01\x02\x03\x04\x05\x06\x07\x08"
#define ONE      "\0\0\0\0\0\0\0\x01"
#define SEVEN    "\0\0\0\0\0\0\0\x07"
#define EIGHT    "\x80\0\0\0\0\0\0\x08"

static const struct {
        const char *name;
        struct slice bytes;
        struct companion_frame frame;
} frames[] = {
        { "two recipients",
          S("\x01\x03" SEQUENCE "\0\0\0\x05\0\0\0\x02\0\0\0\x01k" SEVEN EIGHT "payload"),
          { 0x0102030405060708, 5, true, true, S("k"), S(SEVEN EIGHT), S("payload") } },
        { "a part that is not the last",
          S("\x01\0" ONE "\0\x01\0\0\0\0\0\x01\0\0\0\x01k" SEVEN "p"),
          { 1, 65536, false, false, S("k"), S(SEVEN), S("p") } },
        { "an empty key and payload",
          S("\x01\x01" ONE "\0\0\0\0\0\0\0\x01\0\0\0\0" SEVEN),
          { 1, 0, true, false, S(""), S(SEVEN), S("") } },
        { "no recipient",
          S("\x01\x02" ONE "\0\0\0\0\0\0\0\0\0\0\0\x02key"),
          { 1, 0, false, true, S("ke"), S(""), S("y") } },
        { "the largest index",
          S("\x01\x01" ONE "\xFF\xFF\xFF\xFE\0\0\0\x01\0\0\0\0" SEVEN),
          { 1, UINT32_MAX - 1, true, false, S(""), S(SEVEN), S("") } },
};

Test(frame, is_written_as_specified) {
        for (size_t i = 0; i < N_ROWS(frames); i++) {
                struct buf buf = { 0 };

                companion_frame_append(&buf, &frames[i].frame);
                cr_expect(slice_equal(buf_slice(&buf), frames[i].bytes), ROW(frames, i));
                buf_deinit(&buf);
        }
}

Test(frame, is_read_as_it_was_written) {
        for (size_t i = 0; i < N_ROWS(frames); i++) {
                const struct companion_frame *expected = &frames[i].frame;
                struct companion_frame frame;

                cr_assert_eq(companion_frame_read(frames[i].bytes, &frame), 0, ROW(frames, i));
                cr_expect_eq(frame.sequence, expected->sequence, ROW(frames, i));
                cr_expect_eq(frame.index, expected->index, ROW(frames, i));
                cr_expect_eq(frame.is_last, expected->is_last, ROW(frames, i));
                cr_expect_eq(frame.wants_acknowledgement, expected->wants_acknowledgement, ROW(frames, i));
                cr_expect(slice_equal(frame.key, expected->key), ROW(frames, i));
                cr_expect(slice_equal(frame.recipients, expected->recipients), ROW(frames, i));
                cr_expect(slice_equal(frame.payload, expected->payload), ROW(frames, i));
        }
}

Test(frame, lists_its_recipients) {
        struct companion_frame frame = { 0 };
        struct buf recipients = { 0 };

        companion_recipient_append(&recipients, 7);
        companion_recipient_append(&recipients, UINT64_MAX);
        frame.recipients = buf_slice(&recipients);
        cr_assert_eq(companion_frame_n_recipients(&frame), 2);
        cr_expect_eq(companion_frame_recipient(&frame, 0), 7);
        cr_expect_eq(companion_frame_recipient(&frame, 1), UINT64_MAX);
        buf_deinit(&recipients);
}

static const struct {
        const char *name;
        struct slice bytes;
} unreadable[] = {
        { "empty", S("") },
        { "absent", { 0 } },
        { "a header without its last byte", S("\x01\x01" ONE "\0\0\0\0\0\0\0\0\0\0\0") },
        { "an earlier version", S("\0\x01" ONE "\0\0\0\0\0\0\0\x01\0\0\0\0" SEVEN) },
        { "a later version", S("\x02\x01" ONE "\0\0\0\0\0\0\0\x01\0\0\0\0" SEVEN) },
        { "an unknown flag", S("\x01\x05" ONE "\0\0\0\0\0\0\0\x01\0\0\0\0" SEVEN) },
        { "sequence 0", S("\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0" SEVEN) },
        { "a recipient without its last byte",
          S("\x01\x01" ONE "\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0") },
        { "fewer recipients than the header says",
          S("\x01\x01" ONE "\0\0\0\0\0\0\0\x02\0\0\0\0" SEVEN "payload") },
        { "a key without its last byte", S("\x01\x01" ONE "\0\0\0\0\0\0\0\0\0\0\0\x02k") },
        { "a key as long as 32 bits allow", S("\x01\x01" ONE "\0\0\0\0\0\0\0\x01\xFF\xFF\xFF\xFF" SEVEN) },
        { "as many recipients as 32 bits allow",
          S("\x01\x01" ONE "\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0" SEVEN) },
        { "an index that exceeds 32 bits", S("\x01\x01" ONE "\xFF\xFF\xFF\xFF\0\0\0\x01\0\0\0\0" SEVEN) },
};

Test(frame, is_rejected_if_any_part_is_malformed) {
        for (size_t i = 0; i < N_ROWS(unreadable); i++) {
                struct companion_frame frame = { .sequence = 99 };

                cr_expect_eq(companion_frame_read(unreadable[i].bytes, &frame), -EBADMSG,
                             ROW(unreadable, i));
                cr_expect_eq(frame.sequence, 99, ROW(unreadable, i));
        }
}
