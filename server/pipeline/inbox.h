/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fair_queue/fair_queue.h"
#include "protocol/message.h"

/*
 * Messages that have arrived and wait for execution, in the queues of their clients.
 * fair_queue/fair_queue.h defines the order and the limits.
 *
 * Pure: no clock, no event loop; the order depends only on the calls. Not thread-safe. All zeros is
 * an empty inbox.
 */

struct inbox {
        struct fair_queues queues; /* queues.n_bytes: of the messages in it, with their overhead */
};

/* Free all messages. */
void inbox_deinit(struct inbox *inbox);

/*
 * Append a copy of the message to the client's queue. client is as for fair_queues_open(). Returns
 * 0, -ENOBUFS if the message exceeds the client's share of n_bytes_max, or -ENOMEM. After an error
 * the inbox is unchanged.
 */
int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max);

/* Return true if no message waits. */
bool inbox_is_empty(const struct inbox *inbox);

/*
 * Return the message that is served next, and the time of its arrival. The inbox must not be empty.
 * The message is valid until inbox_drop().
 */
const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns);

/* Free the message that inbox_first() returns. The next queue in the round is served next. */
void inbox_drop(struct inbox *inbox);
