/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fair_queue/fair_queue.h"
#include "protocol/frame.h"

/*
 * What waits to be served. A message of a broker without the plugin and a record in a frame of the
 * plugin become the same item when they arrive: decoding and execution do not ask where an item came from.
 *
 *     message ── queue_add_message() ──► a copy as a record ──► waits by client
 *     frame ──── queue_add_frame() ────► its records ──► wait in their order
 *                                                  queue_first(), queue_pop() ◄── serving
 *
 * Messages wait by client (fair_queue/fair_queue.h defines the order and the limits). The plugin has
 * already taken its clients in turn: its records are served in the order of their numbers, and it
 * limits how many of them wait (COMPANION_FRAMES_MAX frames have records without an end). With
 * the plugin, only messages of test control and of clients inside the process (pipeline/requester.h)
 * are served: messages and records take turns.
 *
 * Frames are decrypted here, and a missing one is noticed ("After the loss of a frame" in
 * common/protocol/companion.h).
 *
 * No I/O, no clock; the order depends only on the calls. Not thread-safe.
 */

enum queue_kind {
        QUEUE_REQUEST,
        QUEUE_DISCONNECT, /* a client has disconnected */
        QUEUE_CONTROL,    /* a message of test control */
};

struct queue_item {
        struct fair_item waiting; /* of a message. First: a pointer to it is a pointer to the item */
        enum queue_kind kind;
        int64_t arrived_ns; /* monotonic */
        size_t n_bytes;     /* of the record in a frame */
        bool has_expiry;    /* of a message */
        uint32_t expiry_s;
        struct requester *requester; /* owned; NULL: the item came from the broker */
        /*
         * Of a message: number and connection are 0, the user name is absent, and the client is the one
         * that the message names. Connection 0 of a QUEUE_DISCONNECT stands for all connections of the
         * client. The record of a QUEUE_CONTROL is a request, with a NUL after its response topic.
         */
        struct frame_to_store_record record;
};

struct queue_frame;
struct requester;

struct queue {
        const char *presence_topic; /* borrowed: of struct pipeline_config */
        bool takes_control;         /* messages of test control are served */

        struct fair_queues messages;
        struct buf properties; /* of the message that is added */
        bool is_record_next;   /* if one waits: the last item was a message */

        uint8_t frame_key[COMPANION_KEY_SIZE]; /* of the frames after the last HELLO */
        uint64_t n_frames; /* frames added since the last HELLO; equals the number of the last frame */
        uint64_t next_record_number;       /* number of the next record to arrive; 0: no frame since HELLO */
        struct queue_frame *oldest, *last; /* list of the frames whose records wait; owned */
        size_t n_frame_bytes;              /* total size of the frames in this list */
};

/* Free all items. */
void queue_deinit(struct queue *queue);

/* The bytes of the messages that wait, as items with their texts, and of the frames. */
size_t queue_n_bytes(const struct queue *queue);

/* 1. Messages */

/*
 * Append a copy of the message to the queue of its client; ignore a message that the store does not
 * serve. All messages share one queue if test control is served: it takes effect in the order of arrival.
 * Texts of user properties are shorter than 2^16 bytes, as in MQTT.
 * requester: of a message from inside the process, which the store serves; else NULL. The queue owns it
 * after success. Returns 0, -ENOBUFS if the message exceeds the client's share of n_bytes_max, or
 * -ENOMEM. After an error the queue is unchanged.
 */
int queue_add_message(struct queue *queue, const struct message *message, struct requester *requester,
                      int64_t arrived_ns, size_t n_bytes_max);

/* 2. Frames */

/* Drop the records that wait: the plugin sends them again. */
void queue_drop_frames(struct queue *queue);

/* HELLO is sent with this key: queue_drop_frames(), and expect frame 1. */
void queue_expect_frames(struct queue *queue, const uint8_t hello_key[COMPANION_KEY_SIZE]);

/*
 * A frame is ignored if it was received before, or was not made with the key: then it belongs to an
 * earlier HELLO, or a client has forged it.
 */
enum queue_frame_result {
        QUEUE_FRAME_ADDED = 0,
        QUEUE_FRAME_IGNORED,
        QUEUE_FRAME_MISSING,   /* an earlier frame is missing: send HELLO */
        QUEUE_FRAME_MALFORMED, /* a defect of the plugin; it counts as missing: send HELLO */
};

/*
 * Append the records of a frame. box: the payload of the message; borrowed for the call. *ret_header: set if
 * the frame was added; its records are removed. Returns a queue_frame_result, or -ENOMEM: this frame then
 * counts as missing.
 */
int queue_add_frame(struct queue *queue, struct slice box, int64_t arrived_ns,
                    struct frame_to_store *ret_header);

/* 3. Serving */

/*
 * Return the item that is served next, valid until queue_pop(); NULL if none waits. The caller may take
 * its requester.
 */
struct queue_item *queue_first(const struct queue *queue);

/* Remove the item that queue_first() returns. */
void queue_pop(struct queue *queue);
