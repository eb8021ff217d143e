/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/message.h"

/*
 * Messages that have arrived and wait to be executed: one FIFO queue per client, served round-robin.
 *
 * Order: messages of one client leave in the order in which they were added. Each client with waiting messages has
 * one message executed per round. A client that has no queue joins the end of the present round. So a message that
 * is alone in its client's queue waits for at most one message of each other queue.
 *
 * Limits: each queue may always hold INBOX_RESERVED_BYTES. Beyond that a client may use INBOX_SHARE times as many bytes
 * as remain free of n_bytes_max: one client alone can fill 4/5 of it, n such clients tend to 4/(4n+1) each. (Choudhury
 * and Hahne, "Dynamic queue length thresholds for shared-memory packet switches".) So the excess of a client that
 * floods is refused, and never displaces the messages of another client. All messages together are bounded by
 * n_bytes_max + (INBOX_QUEUES_MAX + 1) * INBOX_RESERVED_BYTES.
 *
 * At most INBOX_QUEUES_MAX clients have a queue of their own. While all are in use, clients without one share an
 * additional queue, and keep using it until it is empty, so that their order is kept. A peer that sends under many
 * client ids thus gets a bounded part of each round.
 *
 * Pure: no clock, no event loop; the order depends on the calls alone. Not thread-safe. All zeros is an empty inbox.
 */
#define INBOX_QUEUES_MAX     1024
#define INBOX_RESERVED_BYTES ((size_t)64 << 10)
#define INBOX_SHARE          4

struct inbox_queue;

struct inbox {
        struct inbox_queue *by_client; /* uthash */
        struct inbox_queue *shared;    /* of clients without a queue of their own; NULL: empty */
        struct inbox_queue *turn;      /* the queue that is served next; NULL: the inbox is empty */
        size_t n_bytes;                /* of all messages, with their overhead */
};

/* Free all messages. */
void inbox_deinit(struct inbox *inbox);

/*
 * Append a copy of the message to the client's queue. client is any text that identifies the client, and is copied;
 * equal texts share a queue; absent is as good as empty. Returns 0, -ENOBUFS if the message exceeds the client's share
 * of n_bytes_max, or -ENOMEM. After an error the inbox is unchanged.
 */
int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max);

bool inbox_is_empty(const struct inbox *inbox);

/*
 * Return the message that is served next, and when it arrived. The inbox must not be empty. The message is borrowed
 * until inbox_drop().
 */
const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns);

/* Free the message that inbox_first() returns. The next queue in the round is served next. */
void inbox_drop(struct inbox *inbox);
