/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/frame.h"

/*
 * Frames from the plugin (COMPANION_FRAME_TO_STORE in common/protocol/companion.h): decrypt them,
 * notice a missing one, and keep their records until the store executes them, in the order of their
 * numbers.
 *
 *     frames_in_start()     at each HELLO, with its key
 *     frames_in_receive()   for each frame that arrives after WELCOME
 *     frames_in_first()     the record that is executed next
 *     frames_in_drop()      after its execution
 *
 * The plugin limits how many records wait: COMPANION_FRAMES_MAX frames have records without an end.
 * No I/O, no clock. Not thread-safe. All zeros: no HELLO was sent.
 */

struct frame_in;

/* A record that waits for execution. */
struct record_in {
        uint64_t number;    /* see companion.h */
        int64_t arrived_ns; /* monotonic */
        size_t n_bytes;     /* of the record in the frame */
        struct frame_to_store_record record;
};

struct frames_in {
        uint8_t key[COMPANION_KEY_SIZE]; /* of the frames after the last HELLO */
        uint64_t n_received;             /* frames since the last HELLO: the number of the last one */
        uint64_t next_number;            /* of the record after the last received one; 0: none received */
        struct frame_in *oldest, *last;  /* the frames with waiting records; owned */
        struct record_in next;           /* if `oldest` is not NULL */
        size_t n_bytes;                  /* of these frames */

        /* Of the last frame. */
        uint64_t delivered;
        struct frame_counters counters;
};

/* Drop the waiting records. `delivered` and the counters stay. */
void frames_in_deinit(struct frames_in *frames_in);

/*
 * HELLO is sent with this key: frames_in_deinit(), and expect frame 1. The plugin sends the dropped
 * records again.
 */
void frames_in_start(struct frames_in *frames_in, const uint8_t hello_key[COMPANION_KEY_SIZE]);

/*
 * A frame is ignored if it was received before, or was not made with the key: then it belongs to an
 * earlier HELLO, or a client has forged it.
 */
enum frames_in_result {
        FRAMES_IN_TAKEN = 0,
        FRAMES_IN_IGNORED,
        FRAMES_IN_MISSING,   /* an earlier frame is missing: send HELLO */
        FRAMES_IN_MALFORMED, /* a defect of the plugin; it counts as missing: send HELLO */
};

/*
 * Receive a frame. box: the payload of the message; borrowed for the call. Returns a
 * frames_in_result, or -ENOMEM: this frame then counts as missing.
 */
int frames_in_receive(struct frames_in *frames_in, struct slice box, int64_t arrived_ns);

/* Return the record that is executed next, valid until frames_in_drop(); NULL if none waits. */
const struct record_in *frames_in_first(const struct frames_in *frames_in);

/* Drop the record that frames_in_first() returns. */
void frames_in_drop(struct frames_in *frames_in);
