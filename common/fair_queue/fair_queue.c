/* SPDX-License-Identifier: Apache-2.0 */

#define HASH_NONFATAL_OOM                       1
#define HASH_FUNCTION(client, length, ret_hash) ((ret_hash) = client_hash(client, length))

#include "fair_queue/fair_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#include "base/assert.h"
#include "hash/client_hash.h"

struct fair_queue {
        struct fair_item *items; /* utlist: a list with the first item at its head */
        size_t n_bytes;
        size_t n_open;
        struct fair_queue *prev, *next; /* the round: a circular list of the queues with items */
        UT_hash_handle hh;
        size_t client_length;
        uint8_t client[];
};

void fair_queues_deinit(struct fair_queues *queues) {
        ASSERT(!queues->next_queue && !queues->by_client);
        free(queues->shared);
}

size_t fair_queue_size(size_t client_length) {
        return sizeof(struct fair_queue) + client_length;
}

static void free_if_unused(struct fair_queues *queues, struct fair_queue *queue) {
        if (queue == queues->shared || queue->n_open > 0 || queue->items)
                return;
        HASH_DELETE(hh, queues->by_client, queue);
        free(queue);
}

static struct fair_queue *new_queue(struct fair_queues *queues, struct slice client) {
        struct fair_queue *queue = calloc(1, fair_queue_size(client.length));

        if (!queue)
                return NULL;

        memcpy(queue->client, client.data, client.length);
        queue->client_length = client.length;
        HASH_ADD(hh, queues->by_client, client, queue->client_length, queue);
        if (!queue->hh.tbl) { /* uthash is out of memory */
                free(queue);
                return NULL;
        }
        return queue;
}

/*
 * The additional queue is allocated before it is needed, because adding an item must not fail. An
 * open queue may be empty, so count all queues.
 */
static int prepare_shared(struct fair_queues *queues) {
        if (!queues->shared && HASH_COUNT(queues->by_client) >= FAIR_QUEUES_MAX)
                queues->shared = calloc(1, sizeof(*queues->shared));
        return queues->shared || HASH_COUNT(queues->by_client) < FAIR_QUEUES_MAX ? 0 : -ENOMEM;
}

int fair_queues_open(struct fair_queues *queues, struct slice client, struct fair_queue **ret_queue) {
        struct fair_queue *queue;

        if (!client.data)
                client = SLICE_LITERAL("");
        HASH_FIND(hh, queues->by_client, client.data, client.length, queue);
        if (!queue) {
                if (prepare_shared(queues) < 0)
                        return -ENOMEM;
                queue = new_queue(queues, client);
        }
        if (!queue)
                return -ENOMEM;

        queue->n_open++;
        *ret_queue = queue;
        return 0;
}

void fair_queues_close(struct fair_queues *queues, struct fair_queue *queue) {
        ASSERT(queue->n_open > 0);
        queue->n_open--;
        free_if_unused(queues, queue);
}

/* Return the queue that gets the next item of the client with this queue. */
static const struct fair_queue *target_queue(const struct fair_queues *queues,
                                             const struct fair_queue *queue) {
        if (queue->items)
                return queue;
        if (queues->n_own >= FAIR_QUEUES_MAX || (queues->shared && queues->shared->items))
                return queues->shared;
        return queue;
}

bool fair_queues_has_room(const struct fair_queues *queues, const struct fair_queue *queue, size_t n_bytes,
                          size_t n_bytes_max) {
        size_t n_queued = target_queue(queues, queue)->n_bytes;

        if (n_bytes <= FAIR_QUEUES_RESERVED_BYTES && n_queued <= FAIR_QUEUES_RESERVED_BYTES - n_bytes)
                return true;
        return queues->n_bytes <= n_bytes_max && n_bytes <= n_bytes_max - queues->n_bytes &&
               (n_queued + n_bytes) / FAIR_QUEUES_SHARE <= n_bytes_max - queues->n_bytes - n_bytes;
}

void fair_queues_add(struct fair_queues *queues, struct fair_queue *queue, struct fair_item *item,
                     size_t n_bytes) {
        ASSERT(queue->n_open > 0);

        queue = (struct fair_queue *)target_queue(queues, queue);
        if (!queue->items) {
                CDL_APPEND(queues->next_queue, queue);
                queues->n_own += queue != queues->shared;
        }
        item->queue = queue;
        item->n_bytes = n_bytes;
        DL_APPEND(queue->items, item);
        queue->n_bytes += n_bytes;
        queues->n_bytes += n_bytes;
}

struct fair_item *fair_queues_first(const struct fair_queues *queues) {
        return queues->next_queue ? queues->next_queue->items : NULL;
}

void fair_queues_remove(struct fair_queues *queues, struct fair_item *item) {
        struct fair_queue *queue = item->queue;

        DL_DELETE(queue->items, item);
        item->queue = NULL;
        queue->n_bytes -= item->n_bytes;
        queues->n_bytes -= item->n_bytes;
        if (queue->items)
                return;
        CDL_DELETE(queues->next_queue, queue);
        queues->n_own -= queue != queues->shared;
        free_if_unused(queues, queue);
}

void fair_queues_take(struct fair_queues *queues) {
        struct fair_queue *queue = queues->next_queue;

        ASSERT(queue);
        if (queue->items->next)
                queues->next_queue = queue->next;
        fair_queues_remove(queues, queue->items);
}
