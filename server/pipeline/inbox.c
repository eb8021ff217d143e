/* SPDX-License-Identifier: Apache-2.0 */

#define HASH_NONFATAL_OOM 1

#include "pipeline/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#include "base/assert.h"

struct inbox_item {
        struct inbox_item *next;
        struct message *message;
        int64_t arrived_ns;
};

/* A queue exists as long as it has items. */
struct inbox_queue {
        struct inbox_item *first, *last;
        size_t n_bytes;
        struct inbox_queue *prev, *next; /* the round: a circular list */
        UT_hash_handle hh;
        size_t client_length;
        uint8_t client[];
};

static size_t item_size(const struct message *message) {
        return sizeof(struct inbox_item) + message_size(message);
}

static void free_item(struct inbox_item *item) {
        free(item->message);
        free(item);
}

void inbox_deinit(struct inbox *inbox) {
        while (inbox->next_queue)
                inbox_drop(inbox);
        while (inbox->first_early)
                inbox_drop_early(inbox);
}

/* Return the queue that a message of this client belongs to; NULL: there is none yet. */
static struct inbox_queue *find_queue(const struct inbox *inbox, struct slice client) {
        struct inbox_queue *queue;

        HASH_FIND(hh, inbox->by_client, client.data, client.length, queue);
        return queue ? queue : inbox->shared;
}

static void free_queue(struct inbox *inbox, struct inbox_queue *queue) {
        CDL_DELETE(inbox->next_queue, queue);
        if (queue == inbox->shared)
                inbox->shared = NULL;
        else
                HASH_DELETE(hh, inbox->by_client, queue);
        free(queue);
}

/* Create an empty queue at the end of the present round. */
static struct inbox_queue *new_queue(struct inbox *inbox, struct slice client) {
        struct inbox_queue *queue = calloc(1, sizeof(*queue) + client.length);

        if (!queue)
                return NULL;

        memcpy(queue->client, client.data, client.length);
        queue->client_length = client.length;
        if (HASH_COUNT(inbox->by_client) == INBOX_QUEUES_MAX) {
                inbox->shared = queue;
        } else {
                HASH_ADD(hh, inbox->by_client, client, queue->client_length, queue);
                if (!queue->hh.tbl) { /* uthash is out of memory */
                        free(queue);
                        return NULL;
                }
        }
        CDL_APPEND(inbox->next_queue, queue);
        return queue;
}

static struct inbox_item *new_item(const struct message *message, int64_t arrived_ns) {
        struct inbox_item *item = malloc(sizeof(*item));

        if (!item)
                return NULL;

        *item = (struct inbox_item){ .message = message_copy(message), .arrived_ns = arrived_ns };
        if (!item->message) {
                free(item);
                return NULL;
        }
        return item;
}

static void append(struct inbox_item **first, struct inbox_item **last, struct inbox_item *item) {
        if (*first)
                (*last)->next = item;
        else
                *first = item;
        *last = item;
}

/* Return true if a queue of n_queued bytes may grow by size. */
static bool has_room(const struct inbox *inbox, size_t n_queued, size_t size, size_t n_bytes_max) {
        if (size <= INBOX_RESERVED_BYTES && n_queued <= INBOX_RESERVED_BYTES - size)
                return true;
        return inbox->n_bytes <= n_bytes_max && size <= n_bytes_max - inbox->n_bytes &&
               (n_queued + size) / INBOX_SHARE <= n_bytes_max - inbox->n_bytes - size;
}

/*
 * Find or create the client's queue, and check that the queue may grow by size. Returns 0, -ENOBUFS
 * or -ENOMEM.
 */
static int prepare_queue(struct inbox *inbox, struct slice client, size_t size, size_t n_bytes_max,
                         struct inbox_queue **ret_queue) {
        struct inbox_queue *queue;

        if (!client.data)
                client = SLICE_LITERAL("");
        queue = find_queue(inbox, client);
        if (!has_room(inbox, queue ? queue->n_bytes : 0, size, n_bytes_max))
                return -ENOBUFS;
        if (!queue)
                queue = new_queue(inbox, client);
        if (!queue)
                return -ENOMEM;

        *ret_queue = queue;
        return 0;
}

static void enqueue(struct inbox *inbox, struct inbox_queue *queue, struct inbox_item *item, size_t size) {
        append(&queue->first, &queue->last, item);
        queue->n_bytes += size;
        inbox->n_bytes += size;
}

int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max) {
        size_t size = item_size(message);
        struct inbox_queue *queue;
        struct inbox_item *item;
        int r;

        r = prepare_queue(inbox, client, size, n_bytes_max, &queue);
        if (r < 0)
                return r;

        item = new_item(message, arrived_ns);
        if (!item) {
                if (!queue->first)
                        free_queue(inbox, queue);
                return -ENOMEM;
        }

        enqueue(inbox, queue, item, size);
        return 0;
}

bool inbox_is_empty(const struct inbox *inbox) {
        return !inbox->next_queue;
}

const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns) {
        ASSERT(inbox->next_queue);

        *ret_arrived_ns = inbox->next_queue->first->arrived_ns;
        return inbox->next_queue->first->message;
}

void inbox_drop(struct inbox *inbox) {
        struct inbox_queue *queue = inbox->next_queue;
        struct inbox_item *item;
        size_t size;

        ASSERT(queue);

        item = queue->first;
        size = item_size(item->message);
        queue->first = item->next;
        queue->n_bytes -= size;
        inbox->n_bytes -= size;
        free_item(item);

        if (queue->first) {
                inbox->next_queue = queue->next;
                return;
        }
        free_queue(inbox, queue);
}

int inbox_add_early(struct inbox *inbox, const struct message *message, int64_t arrived_ns,
                    size_t n_bytes_max) {
        size_t n_bytes = inbox->n_bytes + inbox->n_early_bytes, size = item_size(message);
        struct inbox_item *item;

        if (n_bytes > n_bytes_max || size > n_bytes_max - n_bytes)
                return -ENOBUFS;

        item = new_item(message, arrived_ns);
        if (!item)
                return -ENOMEM;

        append(&inbox->first_early, &inbox->last_early, item);
        inbox->n_early_bytes += size;
        return 0;
}

struct message *inbox_first_early(const struct inbox *inbox) {
        return inbox->first_early ? inbox->first_early->message : NULL;
}

static struct inbox_item *take_early(struct inbox *inbox) {
        struct inbox_item *item = inbox->first_early;

        ASSERT(item);

        inbox->first_early = item->next;
        inbox->n_early_bytes -= item_size(item->message);
        item->next = NULL;
        return item;
}

int inbox_admit_early(struct inbox *inbox, struct slice client, size_t n_bytes_max) {
        size_t size = item_size(inbox->first_early->message);
        struct inbox_queue *queue;
        int r;

        r = prepare_queue(inbox, client, size, n_bytes_max, &queue);
        if (r == 0)
                enqueue(inbox, queue, take_early(inbox), size);
        return r;
}

void inbox_drop_early(struct inbox *inbox) {
        free_item(take_early(inbox));
}
