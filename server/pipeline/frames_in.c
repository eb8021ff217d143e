/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/frames_in.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "protocol/companion_box.h"

/* A decrypted frame. */
struct frame_in {
        struct frame_in *later;
        int64_t arrived_ns;
        uint64_t number;      /* of the first record in `records` */
        struct slice records; /* that wait behind frames_in.next; a part of `text` */
        size_t n_bytes;       /* of the box */
        uint8_t text[];
};

/* 1. The waiting records */

static void free_oldest(struct frames_in *frames_in) {
        struct frame_in *frame = frames_in->oldest;

        frames_in->oldest = frame->later;
        if (!frames_in->oldest)
                frames_in->last = NULL;
        frames_in->n_bytes -= frame->n_bytes;
        free(frame);
}

/* Then read the next record, and free the frames that have none left. */
void frames_in_drop(struct frames_in *frames_in) {
        struct frame_in *frame;

        while ((frame = frames_in->oldest)) {
                size_t n_bytes = frame->records.length;

                if (frame_to_store_next(&frame->records, &frames_in->next.record)) {
                        frames_in->next.n_bytes = n_bytes - frame->records.length;
                        frames_in->next.number = frame->number++;
                        frames_in->next.arrived_ns = frame->arrived_ns;
                        return;
                }
                free_oldest(frames_in);
        }
}

const struct record_in *frames_in_first(const struct frames_in *frames_in) {
        return frames_in->oldest ? &frames_in->next : NULL;
}

void frames_in_deinit(struct frames_in *frames_in) {
        while (frames_in->oldest)
                free_oldest(frames_in);
}

void frames_in_start(struct frames_in *frames_in, const uint8_t hello_key[COMPANION_KEY_SIZE]) {
        frames_in_deinit(frames_in);
        companion_frame_key(hello_key, frames_in->key);
        frames_in->n_received = 0;
        frames_in->next_number = 0;
}

/* 2. Arrival */

static void append(struct frames_in *frames_in, struct frame_in *frame) {
        bool was_empty = !frames_in->oldest;

        if (was_empty)
                frames_in->oldest = frame;
        else
                frames_in->last->later = frame;
        frames_in->last = frame;
        frames_in->n_bytes += frame->n_bytes;
        if (was_empty)
                frames_in_drop(frames_in); /* only reads the first one */
}

int frames_in_receive(struct frames_in *frames_in, struct slice box, int64_t arrived_ns) {
        CLEANUP(cleanup_free) struct frame_in *frame = malloc(sizeof(*frame) + box.length);
        struct frame_to_store header;
        size_t length;

        if (!frame)
                return -ENOMEM;

        *frame = (struct frame_in){ .arrived_ns = arrived_ns, .n_bytes = box.length };
        if (companion_box_open(box, frames_in->key, frame->text, &length) < 0)
                return FRAMES_IN_IGNORED;
        if (frame_to_store_read((struct slice){ frame->text, length }, &header) < 0)
                return FRAMES_IN_MALFORMED;
        if (header.number <= frames_in->n_received)
                return FRAMES_IN_IGNORED;
        if (header.number > frames_in->n_received + 1)
                return FRAMES_IN_MISSING;
        /* After the first frame, the records of each frame follow those of the frame before. */
        if (frames_in->next_number > 0 && header.first != frames_in->next_number)
                return FRAMES_IN_MALFORMED;

        frames_in->n_received++;
        frames_in->next_number = header.first + header.n_records;
        frames_in->delivered = header.delivered;
        frames_in->counters = header.counters;
        frame->number = header.first;
        frame->records = header.records;
        append(frames_in, take_ptr(&frame));
        return FRAMES_IN_TAKEN;
}
