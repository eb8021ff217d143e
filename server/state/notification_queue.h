/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/effects.h"
#include "state/change_set.h"

/*
 * The pending notifications: one for each change of a watched key, in the order of the changes (a
 * transactional outbox). A notification is staged until the change set with its change is
 * committed. Then it is pending until it is acknowledged.
 *
 * All zeros is an empty queue.
 */

struct notification_queue {
        /* Owned. key.data is an allocation with key, recipients, and the value if there is no entry. */
        struct pending_notification *items;
        size_t first, n_items, capacity; /* the items [0, first) are removed */
        size_t n_pending;                /* they begin at `first`; the staged ones follow */
        size_t n_bytes;                  /* of keys, values and recipients */
        uint64_t last_sequence;          /* the next item has a greater one */
};

void notification_queue_deinit(struct notification_queue *queue);

/*
 * Stage one notification for each watched change of the effects. Nothing may be staged. Returns 0,
 * or -ENOMEM with nothing staged.
 */
int notification_queue_stage(struct notification_queue *queue, const struct effects *effects);

/* The staged notifications become pending. */
void notification_queue_commit(struct notification_queue *queue);

/* Drop the staged notifications. Their sequences are assigned again. */
void notification_queue_roll_back(struct notification_queue *queue);

/* Return the staged notifications in order, valid until the next call that changes the queue; NULL: none. */
const struct pending_notification *notification_queue_staged(const struct notification_queue *queue,
                                                             size_t *ret_n);

/*
 * Add a copy of a pending notification from a change set. Nothing may be staged. Returns 0, -ENOMEM, or
 * -EBADMSG if its sequence does not follow that of the last pending one.
 */
int notification_queue_add(struct notification_queue *queue,
                           const struct pending_notification *notification);

/*
 * Remove all notifications up to this sequence. If it is above last_sequence, it becomes
 * last_sequence; then nothing may be staged.
 */
void notification_queue_remove(struct notification_queue *queue, uint64_t sequence);

/* Return the first pending notification after this sequence, borrowed; NULL: none. */
const struct pending_notification *notification_queue_after(const struct notification_queue *queue,
                                                            uint64_t sequence);
