/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "pipeline/requester.h"
#include "protocol/companion_box.h"
#include "protocol/properties.h"
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

/* The client that has sent the message, as the message itself names it. */
static struct slice sender_of(const struct message *message) {
        struct slice source = message_property(message, PROPERTY_SOURCE_ID);

        return source.length > 0 ? source : topic_response_client(message->response_topic);
}

/*
 * Set what the message asks for, and the client in whose queue it waits: a disconnect waits behind the
 * requests of its client. Returns false for a message that the store does not serve.
 */
static bool classify_message(const struct queue *queue, const struct message *message,
                             struct queue_item *item) {
        struct frame_to_store_record *record = &item->record;

        record->kind = FRAME_REQUEST;
        if (slice_equal(message->topic, SLICE_LITERAL(TOPIC_INVOKE))) {
                item->kind = QUEUE_REQUEST;
                record->client_id = item->requester ? requester_queue(item->requester) : sender_of(message);
        } else if (queue->takes_control && slice_equal(message->topic, SLICE_LITERAL(TOPIC_CONTROL))) {
                item->kind = QUEUE_CONTROL;
        } else if (queue->presence_topic &&
                   topic_match_client(message->topic, slice_from_string(queue->presence_topic),
                                      &record->client_id)) {
                item->kind = QUEUE_DISCONNECT;
                record->kind = FRAME_DISCONNECTED;
        } else {
                return false;
        }
        return true;
}

/* Set the request of the message. Its slices borrow from the message and from queue->properties. */
static void set_request(struct queue *queue, const struct message *message, struct queue_item *item) {
        frame_properties_append(&queue->properties, message);
        item->has_expiry = message->has_expiry;
        item->expiry_s = message->has_expiry ? message->expiry_s : 0;
        item->record.request = (struct frame_request){
                .qos = message->qos,
                .response_topic = message->response_topic,
                .correlation_data = message->correlation_data,
                .properties = buf_slice(&queue->properties),
                .payload = message->payload,
        };
}

/*
 * Copy the item, with its texts behind it; NULL if out of memory. They need at most n_bytes: the length of a
 * text in a frame is longer than the NUL of slice_copy().
 */
static struct queue_item *copy_item(const struct queue_item *item) {
        struct queue_item *copy = malloc(sizeof(*copy) + item->n_bytes);
        struct frame_request *request;
        uint8_t *at;

        if (!copy)
                return NULL;

        *copy = *item;
        at = (uint8_t *)(copy + 1);
        copy->record.client_id = slice_copy(&at, item->record.client_id);
        request = &copy->record.request; /* of a disconnect: all zeros */
        request->response_topic = slice_copy(&at, request->response_topic);
        request->correlation_data = slice_copy(&at, request->correlation_data);
        request->properties = slice_copy(&at, request->properties);
        request->payload = slice_copy(&at, request->payload);
        return copy;
}

int queue_add_message(struct queue *queue, const struct message *message, struct requester *requester,
                      int64_t arrived_ns, size_t n_bytes_max) {
        struct queue_item item = { .arrived_ns = arrived_ns, .requester = requester }, *copy;
        struct fair_queue *of_client;
        size_t n_bytes;
        int r;

        if (!classify_message(queue, message, &item))
                return 0;
        buf_reset(&queue->properties);
        if (item.record.kind == FRAME_REQUEST)
                set_request(queue, message, &item);
        item.n_bytes = frame_to_store_record_size(&item.record);
        n_bytes = sizeof(item) + item.n_bytes;

        r = fair_queues_open(&queue->messages,
                             queue->takes_control ? (struct slice){ 0 } : item.record.client_id, &of_client);
        if (r < 0)
                return r;

        if (!fair_queues_has_room(&queue->messages, of_client, n_bytes, n_bytes_max))
                r = -ENOBUFS;
        else if (buf_failed(&queue->properties) || !(copy = copy_item(&item)))
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
        queue->is_record_next = item->waiting.queue;
        if (queue->is_record_next)
                pop_message(queue);
        else if (++queue->oldest->n_served == queue->oldest->n_items)
                drop_oldest_frame(queue);
}

void queue_deinit(struct queue *queue) {
        while (first_message(queue))
                pop_message(queue);
        fair_queues_deinit(&queue->messages);
        buf_deinit(&queue->properties);
        queue_drop_frames(queue);
}
