/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of notifications. A valid frame, parsed and encoded, must give the same bytes. An
 * encoded frame, parsed, must give the same fields, and must be refused if it is cut before its
 * payload.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"
#include "protocol/companion_frame.h"

static void check_recipients(const struct companion_frame *frame) {
        CLEANUP(buf_deinit) struct buf recipients = { 0 };

        for (size_t i = 0; i < companion_frame_n_recipients(frame); i++)
                companion_recipient_append(&recipients, companion_frame_recipient(frame, i));
        ASSERT(!buf_failed(&recipients));
        ASSERT(slice_equal(buf_slice(&recipients), frame->recipients));
}

static void read_frame(struct slice input) {
        CLEANUP(buf_deinit) struct buf again = { 0 };
        struct companion_frame frame;
        int r = companion_frame_read(input, &frame);

        if (r < 0) {
                ASSERT(r == -EBADMSG);
                return;
        }
        ASSERT(frame.sequence > 0);
        ASSERT(frame.index + (uint64_t)companion_frame_n_recipients(&frame) <= UINT32_MAX);
        check_recipients(&frame);
        companion_frame_append(&again, &frame);
        ASSERT(slice_equal(buf_slice(&again), input));
}

/* A frame that is made of the input, and each of its beginnings. */
static void write_frame(struct slice input) {
        CLEANUP(buf_deinit) struct buf recipients = { 0 };
        CLEANUP(buf_deinit) struct buf buf = { 0 };
        struct companion_frame frame = { .sequence = input_number(&input, 8) | 1,
                                         .index = (uint32_t)input_number(&input, 3),
                                         .is_last = input_chance(&input, 50),
                                         .wants_acknowledgement = input_chance(&input, 50) };
        struct companion_frame read;

        for (size_t n = input_below(&input, 8); n > 0; n--)
                companion_recipient_append(&recipients, input_number(&input, 8));
        frame.recipients = buf_slice(&recipients);
        frame.key = input_text(&input);
        frame.payload = input;
        companion_frame_append(&buf, &frame);
        ASSERT(companion_frame_read(buf_slice(&buf), &read) == 0);
        ASSERT(read.sequence == frame.sequence && read.index == frame.index);
        ASSERT(slice_equal(read.payload, frame.payload) && slice_equal(read.key, frame.key));

        for (size_t length = 0; length < buf.length - frame.payload.length; length++) {
                struct slice part = text_copy((struct slice){ buf.data, length });

                ASSERT(companion_frame_read(part, &read) == -EBADMSG);
                text_free(&part);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct slice input = { data, size };

        read_frame(input);
        write_frame(input);
        return 0;
}
