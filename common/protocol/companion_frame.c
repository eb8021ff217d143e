/* SPDX-License-Identifier: Apache-2.0 */

#include "protocol/companion_frame.h"

#include <errno.h>

#include "base/assert.h"

#define FLAG_LAST        1
#define FLAG_ACKNOWLEDGE 2

static void append_number(struct buf *buf, uint64_t number, size_t n_bytes) {
        uint8_t bytes[sizeof(number)];

        for (size_t i = 0; i < n_bytes; i++)
                bytes[i] = (uint8_t)(number >> (8 * (n_bytes - 1 - i)));
        buf_append(buf, bytes, n_bytes);
}

static uint64_t read_number(const uint8_t *bytes, size_t n_bytes) {
        uint64_t number = 0;

        for (size_t i = 0; i < n_bytes; i++)
                number = number << 8 | bytes[i];
        return number;
}

/* Remove the first bytes and return them. The caller has checked the length. */
static struct slice remove_prefix(struct slice *bytes, size_t length) {
        struct slice prefix = { bytes->data, length };

        bytes->data += length;
        bytes->length -= length;
        return prefix;
}

void companion_recipient_append(struct buf *recipients, uint64_t connection) {
        append_number(recipients, connection, COMPANION_RECIPIENT_SIZE);
}

size_t companion_frame_n_recipients(const struct companion_frame *frame) {
        return frame->recipients.length / COMPANION_RECIPIENT_SIZE;
}

uint64_t companion_frame_recipient(const struct companion_frame *frame, size_t i) {
        ASSERT(i < companion_frame_n_recipients(frame));
        return read_number(frame->recipients.data + i * COMPANION_RECIPIENT_SIZE, COMPANION_RECIPIENT_SIZE);
}

void companion_frame_append(struct buf *buf, const struct companion_frame *frame) {
        uint8_t flags = 0;

        if (frame->is_last)
                flags |= FLAG_LAST;
        if (frame->wants_acknowledgement)
                flags |= FLAG_ACKNOWLEDGE;

        append_number(buf, COMPANION_FRAME_VERSION, 1);
        append_number(buf, flags, 1);
        append_number(buf, frame->sequence, 8);
        append_number(buf, frame->index, 4);
        append_number(buf, companion_frame_n_recipients(frame), 4);
        append_number(buf, frame->key.length, 4);
        buf_append_slice(buf, frame->key);
        buf_append_slice(buf, frame->recipients);
        buf_append_slice(buf, frame->payload);
}

int companion_frame_read(struct slice bytes, struct companion_frame *ret_frame) {
        struct companion_frame frame;
        const uint8_t *header = bytes.data;
        uint64_t n_recipients, key_length;

        if (bytes.length < COMPANION_FRAME_HEADER_SIZE || header[0] != COMPANION_FRAME_VERSION ||
            (header[1] & ~(FLAG_LAST | FLAG_ACKNOWLEDGE)) != 0)
                return -EBADMSG;

        frame = (struct companion_frame){
                .sequence = read_number(header + 2, 8),
                .index = (uint32_t)read_number(header + 10, 4),
                .is_last = header[1] & FLAG_LAST,
                .wants_acknowledgement = header[1] & FLAG_ACKNOWLEDGE,
        };
        n_recipients = read_number(header + 14, 4);
        key_length = read_number(header + 18, 4);
        remove_prefix(&bytes, COMPANION_FRAME_HEADER_SIZE);
        if (frame.sequence == 0 || frame.index + n_recipients > UINT32_MAX ||
            key_length + n_recipients * COMPANION_RECIPIENT_SIZE > bytes.length)
                return -EBADMSG;

        frame.key = remove_prefix(&bytes, key_length);
        frame.recipients = remove_prefix(&bytes, n_recipients * COMPANION_RECIPIENT_SIZE);
        frame.payload = bytes;
        *ret_frame = frame;
        return 0;
}
