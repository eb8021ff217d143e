/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "codec/invocation.h"
#include "pipeline/requester.h"
#include "protocol/companion_box.h"
#include "protocol/topics.h"

/* A frame with its records; the first n_served of them are served. */
struct queue_frame {
        struct queue_frame *later;
        struct queue_item *items;
        size_t n_items, n_served, items_capacity;
        size_t n_bytes; /* of the box */
        uint8_t text[];
};

size_t queue_n_bytes(const struct queue *queue) {
        return queue->messages.n_bytes + queue->n_frame_bytes;
}

/* 1. Messages */

/*
 * What the message asks for, and the client in whose queue it waits. A disconnect waits behind the
 * requests of its client. Returns false for a message that the store does not serve.
 */
static bool classify_message(const struct queue *queue, const struct message *message,
                             enum queue_kind *ret_kind, struct slice *ret_client) {
        if (slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE))) {
                *ret_kind = QUEUE_REQUEST;
                *ret_client = invocation_sender(message);
        } else if (queue->takes_control && slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL))) {
                *ret_kind = QUEUE_CONTROL;
        } else if (queue->presence_topic &&
                   topic_match_client(message->topic, slice_from_string(queue->presence_topic),
                                      ret_client)) {
                *ret_kind = QUEUE_DISCONNECT;
        } else {
                return false;
        }
        return true;
}

/* Return an item that owns a copy of the message, or NULL. */
static struct queue_item *copy_message(const struct queue *queue, const struct message *message,
                                       enum queue_kind kind, int64_t arrived_ns) {
        struct queue_item *item = malloc(sizeof(*item));
        struct message *copy = message_copy(message);

        if (!item || !copy) {
                free(item);
                free(copy);
                return NULL;
        }
        *item = (struct queue_item){
                .kind = kind, .arrived_ns = arrived_ns, .n_bytes = message_size(copy), .message = copy
        };
        if (kind == QUEUE_DISCONNECT) /* the client id of the copy */
                topic_match_client(copy->topic, slice_from_string(queue->presence_topic),
                                   &item->record.client_id);
        return item;
}

int queue_add_message(struct queue *queue, const struct message *message, struct requester *requester,
                      int64_t arrived_ns, size_t n_bytes_max) {
        size_t n_bytes = sizeof(struct queue_item) + message_size(message);
        struct fair_queue *of_client;
        struct slice client = { 0 };
        struct queue_item *item;
        enum queue_kind kind;
        int r;

        if (!classify_message(queue, message, &kind, &client))
                return 0;
        if (requester)
                client = requester_queue(requester);

        r = fair_queues_open(&queue->messages, queue->takes_control ? (struct slice){ 0 } : client,
                             &of_client);
        if (r < 0)
                return r;

        if (!fair_queues_has_room(&queue->messages, of_client, n_bytes, n_bytes_max))
                r = -ENOBUFS;
        else if (!(item = copy_message(queue, message, kind, arrived_ns)))
                r = -ENOMEM;
        else {
                item->requester = requester;
                fair_queues_add(&queue->messages, of_client, &item->waiting, n_bytes);
        }
        fair_queues_close(&queue->messages, of_client);
        return r;
}

/* 2. Frames */

static void free_frame(struct queue_frame **frame) {
        if (!*frame)
                return;
        free((*frame)->items);
        free(*frame);
}

static void drop_oldest_frame(struct queue *queue) {
        struct queue_frame *frame = queue->oldest;

        queue->oldest = frame->later;
        if (!queue->oldest)
                queue->last = NULL;
        queue->n_frame_bytes -= frame->n_bytes;
        free_frame(&frame);
}

void queue_drop_frames(struct queue *queue) {
        while (queue->oldest)
                drop_oldest_frame(queue);
}

void queue_expect_frames(struct queue *queue, const uint8_t hello_key[COMPANION_KEY_SIZE]) {
        queue_drop_frames(queue);
        companion_frame_key(hello_key, queue->frame_key);
        queue->n_frames = 0;
        queue->next_record_number = 0;
}

/*
 * Make an item of each record, which is removed. Returns QUEUE_FRAME_ADDED, QUEUE_FRAME_MALFORMED or
 * -ENOMEM.
 */
static int take_records(struct queue_frame *frame, struct frame_to_store *header, int64_t arrived_ns) {
        struct frame_to_store_record record;

        for (size_t n_left = header->records.length; frame_to_store_next(header, &record);
             n_left = header->records.length) {
                if (array_reserve((void **)&frame->items, &frame->items_capacity, frame->n_items + 1,
                                  sizeof(*frame->items)) < 0)
                        return -ENOMEM;
                frame->items[frame->n_items++] = (struct queue_item){
                        .kind = record.kind == FRAME_REQUEST ? QUEUE_REQUEST : QUEUE_DISCONNECT,
                        .arrived_ns = arrived_ns,
                        .n_bytes = n_left - header->records.length,
                        .record = record,
                };
        }
        return header->records.length > 0 ? QUEUE_FRAME_MALFORMED : QUEUE_FRAME_ADDED;
}

static void append_frame(struct queue *queue, struct queue_frame *frame) {
        if (queue->last)
                queue->last->later = frame;
        else
                queue->oldest = frame;
        queue->last = frame;
        queue->n_frame_bytes += frame->n_bytes;
}

int queue_add_frame(struct queue *queue, struct slice box, int64_t arrived_ns,
                    struct frame_to_store *ret_header) {
        CLEANUP(free_frame) struct queue_frame *frame = malloc(sizeof(*frame) + box.length);
        struct frame_to_store header;
        size_t length;
        int r;

        if (!frame)
                return -ENOMEM;

        *frame = (struct queue_frame){ .n_bytes = box.length };
        if (companion_box_open(box, queue->frame_key, frame->text, &length) < 0)
                return QUEUE_FRAME_IGNORED;
        if (frame_to_store_read((struct slice){ frame->text, length }, &header) < 0)
                return QUEUE_FRAME_MALFORMED;
        if (header.frame_number <= queue->n_frames)
                return QUEUE_FRAME_IGNORED;
        if (header.frame_number > queue->n_frames + 1)
                return QUEUE_FRAME_MISSING;
        /* After the first frame, the records of each frame follow those of the frame before. */
        if (queue->next_record_number > 0 && header.next_record_number != queue->next_record_number)
                return QUEUE_FRAME_MALFORMED;
        r = take_records(frame, &header, arrived_ns);
        if (r != QUEUE_FRAME_ADDED)
                return r;

        queue->n_frames++;
        queue->next_record_number = header.next_record_number;
        if (frame->n_items > 0)
                append_frame(queue, take_ptr(&frame));
        *ret_header = header;
        return QUEUE_FRAME_ADDED;
}

/* 3. Serving */

static struct queue_item *first_message(const struct queue *queue) {
        return (struct queue_item *)fair_queues_first(&queue->messages);
}

static void pop_message(struct queue *queue) {
        struct queue_item *item = first_message(queue);

        fair_queues_take(&queue->messages);
        requester_free(item->requester);
        free((void *)item->message);
        free(item);
}

struct queue_item *queue_first(const struct queue *queue) {
        struct queue_item *item = first_message(queue);

        if (queue->oldest && (!item || queue->is_record_next))
                item = &queue->oldest->items[queue->oldest->n_served];
        return item;
}

void queue_pop(struct queue *queue) {
        const struct queue_item *item = queue_first(queue);

        ASSERT(item);
        queue->is_record_next = item->message;
        if (item->message)
                pop_message(queue);
        else if (++queue->oldest->n_served == queue->oldest->n_items)
                drop_oldest_frame(queue);
}

void queue_deinit(struct queue *queue) {
        while (first_message(queue))
                pop_message(queue);
        fair_queues_deinit(&queue->messages);
        queue_drop_frames(queue);
}
