/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
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

static bool is_control(const struct queue *queue, const struct message *message) {
        return queue->takes_control && slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL));
}

bool queue_read_message(const struct queue *queue, const struct message *message, int64_t arrived_ns,
                        struct queue_item *ret_item) {
        struct queue_item item = { .arrived_ns = arrived_ns, .message = message };

        if (slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE))) {
                item.kind = QUEUE_REQUEST;
                invocation_of_message(queue->decoder, message, &item.invocation);
        } else if (is_control(queue, message)) {
                item.kind = QUEUE_CONTROL;
        } else if (queue->presence_topic &&
                   topic_match_client(message->topic, slice_from_string(queue->presence_topic),
                                      &item.disconnect.client_id)) {
                item.kind = QUEUE_DISCONNECT;
        } else {
                return false;
        }
        item.n_bytes = message_size(message);
        *ret_item = item;
        return true;
}

/* The client in whose queue the item waits. A disconnect waits behind the requests of its client. */
static struct slice client_of_item(const struct queue *queue, const struct queue_item *item) {
        if (queue->takes_control)
                return (struct slice){ 0 };
        return item->kind == QUEUE_REQUEST ? item->invocation.request.client : item->disconnect.client_id;
}

/* Return a copy that owns a copy of the message, or NULL. */
static struct queue_item *copy_item(const struct queue *queue, const struct queue_item *item) {
        struct queue_item *copy = malloc(sizeof(*copy));
        struct message *message = message_copy(item->message);

        if (!copy || !message) {
                free(copy);
                free(message);
                return NULL;
        }
        queue_read_message(queue, message, item->arrived_ns, copy);
        return copy;
}

int queue_add(struct queue *queue, const struct queue_item *item, size_t n_bytes_max) {
        size_t n_bytes = sizeof(*item) + item->n_bytes;
        struct fair_queue *of_client;
        struct queue_item *copy;
        int r;

        r = fair_queues_open(&queue->messages, client_of_item(queue, item), &of_client);
        if (r < 0)
                return r;

        if (!fair_queues_has_room(&queue->messages, of_client, n_bytes, n_bytes_max))
                r = -ENOBUFS;
        else if (!(copy = copy_item(queue, item)))
                r = -ENOMEM;
        else
                fair_queues_add(&queue->messages, of_client, &copy->waiting, n_bytes);
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
        queue->next_number = 0;
}

static void read_record(const struct queue *queue, const struct frame_to_store_record *record,
                        struct queue_item *item) {
        if (record->kind == FRAME_REQUEST) {
                item->kind = QUEUE_REQUEST;
                invocation_of_record(queue->decoder, record, &item->invocation);
        } else {
                item->kind = QUEUE_DISCONNECT;
                item->disconnect = (struct queued_disconnect){ .client_id = record->client_id,
                                                               .connection = record->connection,
                                                               .is_slow_watcher = record->is_slow_watcher };
        }
}

/* Make the items of the frame. Returns QUEUE_FRAME_ADDED, QUEUE_FRAME_MALFORMED or -ENOMEM. */
static int read_records(const struct queue *queue, struct queue_frame *frame,
                        const struct frame_to_store *header, int64_t arrived_ns) {
        struct slice records = header->records;
        struct frame_to_store_record record;

        for (size_t n_left = records.length; frame_to_store_next(&records, &record);
             n_left = records.length) {
                struct queue_item *item;

                if (array_reserve((void **)&frame->items, &frame->items_capacity, frame->n_items + 1,
                                  sizeof(*frame->items)) < 0)
                        return -ENOMEM;
                item = &frame->items[frame->n_items];
                *item = (struct queue_item){ .arrived_ns = arrived_ns,
                                             .n_bytes = n_left - records.length,
                                             .number = header->first + frame->n_items };
                read_record(queue, &record, item);
                frame->n_items++;
        }
        return records.length > 0 ? QUEUE_FRAME_MALFORMED : QUEUE_FRAME_ADDED;
}

static void append_frame(struct queue *queue, struct queue_frame *frame) {
        if (queue->last)
                queue->last->later = frame;
        else
                queue->oldest = frame;
        queue->last = frame;
        queue->n_frame_bytes += frame->n_bytes;
}

int queue_add_frame(struct queue *queue, struct slice box, int64_t arrived_ns) {
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
        if (header.number <= queue->n_frames)
                return QUEUE_FRAME_IGNORED;
        if (header.number > queue->n_frames + 1)
                return QUEUE_FRAME_MISSING;
        /* After the first frame, the records of each frame follow those of the frame before. */
        if (queue->next_number > 0 && header.first != queue->next_number)
                return QUEUE_FRAME_MALFORMED;
        r = read_records(queue, frame, &header, arrived_ns);
        if (r != QUEUE_FRAME_ADDED)
                return r;

        queue->n_frames++;
        queue->next_number = header.first + frame->n_items;
        queue->published = header.published;
        queue->counters = header.counters;
        if (frame->n_items > 0)
                append_frame(queue, take_ptr(&frame));
        return QUEUE_FRAME_ADDED;
}

/* 3. Serving */

static struct queue_item *first_message(const struct queue *queue) {
        return (struct queue_item *)fair_queues_first(&queue->messages);
}

static void drop_first_message(struct queue *queue) {
        struct queue_item *item = first_message(queue);

        fair_queues_take(&queue->messages);
        free((void *)item->message);
        free(item);
}

struct queue_item *queue_first(const struct queue *queue) {
        struct queue_item *item = first_message(queue);

        if (!item && queue->oldest)
                item = &queue->oldest->items[queue->oldest->n_served];
        return item;
}

void queue_drop(struct queue *queue) {
        if (first_message(queue)) {
                drop_first_message(queue);
                return;
        }

        ASSERT(queue->oldest);
        if (++queue->oldest->n_served == queue->oldest->n_items)
                drop_oldest_frame(queue);
}

void queue_deinit(struct queue *queue) {
        while (first_message(queue))
                drop_first_message(queue);
        fair_queues_deinit(&queue->messages);
        queue_drop_frames(queue);
}
