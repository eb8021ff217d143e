/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Items that wait to be served: one FIFO queue per client, served round-robin. The plugin queues
 * requests in it, and the store queues messages of a broker without the plugin.
 *
 * Order: items of one client are served in the order in which they were added. Each round serves
 * one item of each client that has waiting items. The queue of a further client joins at the end of
 * the present round. So an item that is alone in its client's queue waits for at most one item of
 * each other queue.
 *
 * Limits: the argument n_bytes_max of fair_queues_has_room() is the size of all queues. Each queue
 * may always hold FAIR_QUEUES_RESERVED_BYTES. Beyond that, a queue may use FAIR_QUEUES_SHARE times
 * the part of n_bytes_max that remains free afterwards. So one client alone can fill 4/5 of
 * n_bytes_max. If n clients fill their queues, the size of each queue approaches 4/(4n+1) of
 * n_bytes_max. (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches".) If a client sends too many items, only items of this client have no room. All items
 * together are bounded by n_bytes_max + (FAIR_QUEUES_MAX + 1) * FAIR_QUEUES_RESERVED_BYTES.
 *
 * A round has at most FAIR_QUEUES_MAX clients with a queue of their own. The items of further
 * clients share one additional queue, so a round has at most FAIR_QUEUES_MAX + 1 items, even if one
 * sender uses many client ids. While the additional queue has items, it gets the items of each
 * client that has no items in its own queue: this keeps the order of a client's items.
 *
 * Pure: no clock, no event loop; the order depends only on the calls. Not thread-safe. All zeros is
 * an empty set of queues.
 */
#define FAIR_QUEUES_MAX            16384
#define FAIR_QUEUES_RESERVED_BYTES ((size_t)4 << 10)
#define FAIR_QUEUES_SHARE          4

struct fair_queue;

/* Embedded in the caller's item, which the caller owns. An item of all zeros does not wait. */
struct fair_item {
        struct fair_item *prev, *next;
        struct fair_queue *queue; /* the queue in which it waits; NULL: it does not wait */
        size_t n_bytes;
};

struct fair_queues {
        struct fair_queue *by_client; /* uthash: the queues of clients, also empty ones */
        struct fair_queue *shared;    /* the additional queue; NULL: none was needed yet */
        /* The round, from the queue that is served next; NULL: no item waits. */
        struct fair_queue *next_queue;
        size_t n_own;   /* queues of clients in the round, without the additional queue */
        size_t n_bytes; /* of all waiting items */
};

/* Free the queues. No item may wait, and no queue may be open. */
void fair_queues_deinit(struct fair_queues *queues);

/*
 * Open the client's queue. client is any text that identifies the client, and is copied; equal
 * texts share a queue; absent is the same as empty. Close each opened queue. The queue exists while
 * it is open or has items. Returns 0 or -ENOMEM.
 */
int fair_queues_open(struct fair_queues *queues, struct slice client, struct fair_queue **ret_queue);

/* The memory of a queue for a client id of this length. */
size_t fair_queue_size(size_t client_length);

void fair_queues_close(struct fair_queues *queues, struct fair_queue *queue);

/* Return whether an item of n_bytes, added to this queue, stays within the limits. */
bool fair_queues_has_room(const struct fair_queues *queues, const struct fair_queue *queue, size_t n_bytes,
                          size_t n_bytes_max);

/* Append the item, which has n_bytes, to this open queue. Allocates nothing and cannot fail. */
void fair_queues_add(struct fair_queues *queues, struct fair_queue *queue, struct fair_item *item,
                     size_t n_bytes);

/* Return the item that is served next, or NULL if no item waits. */
struct fair_item *fair_queues_first(const struct fair_queues *queues);

/* Remove the item that fair_queues_first() returns. The next queue in the round is served next. */
void fair_queues_take(struct fair_queues *queues);

/* Remove a waiting item from any place. The order of all others stays. */
void fair_queues_remove(struct fair_queues *queues, struct fair_item *item);
