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

/* Exists while it has items. */
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

void inbox_deinit(struct inbox *inbox) {
        while (inbox->turn)
                inbox_drop(inbox);
}

/* Return the queue that a message of this client belongs to; NULL: there is none yet. */
static struct inbox_queue *find_queue(const struct inbox *inbox, struct slice client) {
        struct inbox_queue *queue;

        HASH_FIND(hh, inbox->by_client, client.data, client.length, queue);
        return queue ? queue : inbox->shared;
}

static void free_queue(struct inbox *inbox, struct inbox_queue *queue) {
        CDL_DELETE(inbox->turn, queue);
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
        CDL_APPEND(inbox->turn, queue);
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

static void append(struct inbox_queue *queue, struct inbox_item *item) {
        if (queue->last)
                queue->last->next = item;
        else
                queue->first = item;
        queue->last = item;
}

/* Whether a queue of n_queued bytes may grow by size. */
static bool has_room(const struct inbox *inbox, size_t n_queued, size_t size, size_t n_bytes_max) {
        if (size <= INBOX_RESERVED_BYTES && n_queued <= INBOX_RESERVED_BYTES - size)
                return true;
        return inbox->n_bytes <= n_bytes_max && size <= n_bytes_max - inbox->n_bytes &&
               (n_queued + size) / INBOX_SHARE <= n_bytes_max - inbox->n_bytes - size;
}

int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max) {
        size_t size = item_size(message);
        struct inbox_queue *queue;
        struct inbox_item *item;

        if (!client.data)
                client = SLICE_LITERAL("");
        queue = find_queue(inbox, client);
        if (!has_room(inbox, queue ? queue->n_bytes : 0, size, n_bytes_max))
                return -ENOBUFS;

        item = new_item(message, arrived_ns);
        if (!item)
                return -ENOMEM;
        if (!queue)
                queue = new_queue(inbox, client);
        if (!queue) {
                free(item->message);
                free(item);
                return -ENOMEM;
        }

        append(queue, item);
        queue->n_bytes += size;
        inbox->n_bytes += size;
        return 0;
}

bool inbox_is_empty(const struct inbox *inbox) {
        return !inbox->turn;
}

const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns) {
        ASSERT(inbox->turn);

        *ret_arrived_ns = inbox->turn->first->arrived_ns;
        return inbox->turn->first->message;
}

void inbox_drop(struct inbox *inbox) {
        struct inbox_queue *queue = inbox->turn;
        struct inbox_item *item;
        size_t size;

        ASSERT(queue);

        item = queue->first;
        size = item_size(item->message);
        queue->first = item->next;
        queue->n_bytes -= size;
        inbox->n_bytes -= size;
        free(item->message);
        free(item);

        if (queue->first) {
                inbox->turn = queue->next;
                return;
        }
        free_queue(inbox, queue);
}
