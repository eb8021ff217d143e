/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Messages that have arrived and wait for execution: one FIFO queue per client, served round-robin.
 *
 * Order: messages of one client are executed in the order in which they were added. Each round
 * executes one message of each client that has waiting messages. The queue of a further client
 * joins at the end of the present round. So a message that is alone in its client's queue waits for
 * at most one message of each other queue.
 *
 * Limits: the argument n_bytes_max of inbox_add() is the size of the inbox. Each queue may always
 * hold INBOX_RESERVED_BYTES. Beyond that, a queue may use INBOX_SHARE times the part of n_bytes_max
 * that remains free afterwards. So one client alone can fill 4/5 of n_bytes_max. If n clients fill
 * their queues, the size of each queue approaches 4/(4n+1) of n_bytes_max. (Choudhury and Hahne,
 * "Dynamic queue length thresholds for shared-memory packet switches".) If a client sends too many
 * messages, the inbox refuses messages of this client only. All messages together are bounded by
 * n_bytes_max + (INBOX_QUEUES_MAX + 1) * INBOX_RESERVED_BYTES.
 *
 * At most INBOX_QUEUES_MAX clients have a queue of their own. Further clients share one additional
 * queue, so a round has at most INBOX_QUEUES_MAX + 1 messages, even if a peer sends under many
 * client ids. A client stays in the additional queue until this queue is empty, even if the client
 * could have a queue of its own earlier: this keeps the order of its messages.
 *
 * Early messages: the broker kind (enum broker_kind: with or without the plugin) determines whether
 * requests must be verified. While the broker kind is unknown, messages wait in one more queue, in
 * the order of arrival. The inbox does not serve this queue: the caller moves each of its messages
 * to the queue of its client, or drops it.
 *
 * Pure: no clock, no event loop; the order depends only on the calls. Not thread-safe. All zeros is
 * an empty inbox.
 */
#define INBOX_QUEUES_MAX     1024
#define INBOX_RESERVED_BYTES ((size_t)64 << 10)
#define INBOX_SHARE          4

struct inbox_item;
struct inbox_queue;

struct inbox {
        struct inbox_queue *by_client;  /* uthash */
        struct inbox_queue *shared;     /* shared by the clients without a queue of their own; NULL: empty */
        struct inbox_queue *next_queue; /* the queue that is served next; NULL: the inbox is empty */
        size_t n_bytes;                 /* of the messages in queues of clients, with their overhead */

        struct inbox_item *first_early, *last_early;
        size_t n_early_bytes; /* early messages, with their overhead */
};

/* Free all messages. */
void inbox_deinit(struct inbox *inbox);

/*
 * Append a copy of the message to the client's queue. client is any text that identifies the
 * client, and is copied; equal texts share a queue; absent is the same as empty. Returns 0,
 * -ENOBUFS if the message exceeds the client's share of n_bytes_max, or -ENOMEM. After an error the
 * inbox is unchanged.
 */
int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max);

/* Return true if no queue of a client has a message. Early messages do not count. */
bool inbox_is_empty(const struct inbox *inbox);

/*
 * Return the message that is served next, and the time of its arrival. The inbox must not be empty.
 * The message is valid until inbox_drop().
 */
const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns);

/* Free the message that inbox_first() returns. The next queue in the round is served next. */
void inbox_drop(struct inbox *inbox);

/*
 * Append a copy of the message to the early messages. Returns 0, -ENOBUFS if all messages together
 * would exceed n_bytes_max, or -ENOMEM. After an error the inbox is unchanged.
 */
int inbox_add_early(struct inbox *inbox, const struct message *message, int64_t arrived_ns,
                    size_t n_bytes_max);

/*
 * Return the oldest early message, or NULL if there is none. The inbox owns it. The caller may set
 * its is_verified.
 */
struct message *inbox_first_early(const struct inbox *inbox);

/*
 * Move the oldest early message, which must exist, to the client's queue, without a copy. client and errors as for
 * inbox_add().
 */
int inbox_admit_early(struct inbox *inbox, struct slice client, size_t n_bytes_max);

/* Free the oldest early message, which must exist. */
void inbox_drop_early(struct inbox *inbox);
