/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fair_queue/fair_queue.h"
#include "protocol/message.h"

/*
 * Messages that have arrived and wait for execution, in the queues of their clients.
 * fair_queue/fair_queue.h defines the order and the limits.
 *
 * Early messages: the broker kind (enum broker_kind: with or without the plugin) determines whether
 * messages are executed. While the broker kind is unknown, messages wait in one more queue, in the
 * order of arrival. The inbox does not serve this queue: the caller moves each of its messages to
 * the queue of its client, or drops it.
 *
 * Pure: no clock, no event loop; the order depends only on the calls. Not thread-safe. All zeros is
 * an empty inbox.
 */

struct inbox_item;

struct inbox {
        struct fair_queues queues; /* queues.n_bytes: of the messages in it, with their overhead */
        struct inbox_item *first_early, *last_early;
        size_t n_early_bytes; /* early messages, with their overhead */
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
