/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * The payload of COMPANION_DELIVER (protocol/companion.h): one notification for many connections.
 * No I/O.
 *
 * A frame, with integers in big endian:
 *
 *   offset  bytes
 *        0      1  COMPANION_FRAME_VERSION
 *        1      1  flags: 1 last frame of this change, 2 the store requests DELIVERED; the others are 0
 *        2      8  sequence of the change, from 1
 *       10      4  index of the first recipient: the number of recipients in the earlier frames of this change
 *       14      4  n: the number of recipients in this frame
 *       18      4  k: the length of the key
 *       22      k  key
 *   22 + k    8 n  recipients: the numbers of their connections
 *                  then up to the end: the payload of the notification
 *
 * A change with more recipients than fit in one frame has several frames with the same sequence.
 * Their indexes grow.
 */

#define COMPANION_FRAME_VERSION     1
#define COMPANION_FRAME_HEADER_SIZE 22
#define COMPANION_RECIPIENT_SIZE    8

struct companion_frame {
        uint64_t sequence;
        uint32_t index;
        bool is_last;
        bool wants_acknowledgement;
        struct slice key;        /* borrowed, like all slices here */
        struct slice recipients; /* COMPANION_RECIPIENT_SIZE bytes each: companion_frame_recipient() */
        struct slice payload;
};

/* Append a recipient to the bytes for companion_frame.recipients. */
void companion_recipient_append(struct buf *recipients, uint64_t connection);

size_t companion_frame_n_recipients(const struct companion_frame *frame);

/* Return the connection of recipient i, which is below companion_frame_n_recipients(). */
uint64_t companion_frame_recipient(const struct companion_frame *frame, size_t i);

/*
 * Append the frame. index plus the number of recipients, and the length of the key, are below 2^32.
 */
void companion_frame_append(struct buf *buf, const struct companion_frame *frame);

/*
 * Parse a frame. The slices borrow from the bytes. Returns 0, or -EBADMSG for another version, an
 * unknown flag, sequence 0, an index plus number of recipients above UINT32_MAX, or missing bytes.
 */
int companion_frame_read(struct slice bytes, struct companion_frame *ret_frame);
