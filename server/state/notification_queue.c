/* SPDX-License-Identifier: Apache-2.0 */

#include "state/notification_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "state/recipients.h"

/* 1. Items */

static size_t item_bytes(const struct pending_notification *item) {
        return item->key.length + item->recipients.length + item->value.length;
}

/*
 * Append a copy of the notification, with its own reference to the entry, or with a copy of the value.
 * Returns 0 or -ENOMEM.
 */
static int append_item(struct notification_queue *queue, const struct pending_notification *notification) {
        struct pending_notification item = *notification;
        uint8_t *at;
        int r;

        ASSERT(item.key.length > 0);

        r = array_reserve((void **)&queue->items, &queue->capacity, queue->n_items + 1,
                          sizeof(*queue->items));
        if (r < 0)
                return r;
        at = malloc(item.key.length + item.recipients.length + (item.entry ? 0 : item.value.length) + 3);
        if (!at)
                return -ENOMEM;

        item.key = slice_copy(&at, item.key);
        item.recipients = slice_copy(&at, item.recipients);
        if (item.entry)
                entry_ref(item.entry);
        else
                item.value = slice_copy(&at, item.value);
        queue->items[queue->n_items++] = item;
        queue->n_bytes += item_bytes(&item);
        if (queue->last_sequence < item.sequence)
                queue->last_sequence = item.sequence;
        return 0;
}

static void drop_item(struct notification_queue *queue, struct pending_notification *item) {
        queue->n_bytes -= item_bytes(item);
        entry_unref(item->entry);
        free((void *)item->key.data);
}

void notification_queue_deinit(struct notification_queue *queue) {
        while (queue->first < queue->n_items)
                drop_item(queue, &queue->items[queue->first++]);
        free(queue->items);
        *queue = (struct notification_queue){ 0 };
}

/*
 * Move the remaining items to the start, but only if at least as many items were removed as remain.
 * So on average at most one item is moved per removed item.
 */
static void compact_items(struct notification_queue *queue) {
        size_t n_left = queue->n_items - queue->first;

        if (queue->first < n_left || queue->first == 0)
                return;
        if (n_left > 0)
                memmove(queue->items, queue->items + queue->first, n_left * sizeof(*queue->items));
        queue->n_items = n_left;
        queue->first = 0;
}

/* 2. Staging */

static size_t n_staged(const struct notification_queue *queue) {
        return queue->n_items - queue->first - queue->n_pending;
}

/*
 * Encode the recipients of one change. *at: index of the change's first notification; on return,
 * index of the next change's first notification.
 */
static int encode_recipients(const struct effects *effects, size_t *at, struct buf *recipients) {
        size_t change = effects->notifications[*at].watched_change;

        buf_reset(recipients);
        for (; *at < effects->n_notifications && effects->notifications[*at].watched_change == change;
             (*at)++) {
                const struct registration *registration = effects->notifications[*at].registration;
                struct recipient recipient = { .connection = registration->connection,
                                               .client_length = registration->client_id.length };

                if (recipient.connection == 0)
                        recipient.client = registration->client_id;
                recipients_append(recipients, &recipient);
        }
        return buf_failed(recipients) ? -ENOMEM : 0;
}

int notification_queue_stage(struct notification_queue *queue, const struct effects *effects) {
        CLEANUP(buf_deinit) struct buf recipients = { 0 };
        size_t at = 0;
        int r = 0;

        ASSERT(n_staged(queue) == 0);

        compact_items(queue);
        while (at < effects->n_notifications && r == 0) {
                const struct notification *first = &effects->notifications[at];
                const struct watched_change *change = &effects->watched_changes[first->watched_change];
                struct pending_notification notification = { .sequence = queue->last_sequence + 1,
                                                             .version = change->version,
                                                             .key = first->registration->key_name,
                                                             .entry = change->entry };

                if (change->entry)
                        notification.value = entry_value(change->entry);
                r = encode_recipients(effects, &at, &recipients);
                notification.recipients = buf_slice(&recipients);
                if (r == 0)
                        r = append_item(queue, &notification);
        }
        if (r < 0)
                notification_queue_roll_back(queue);
        return r;
}

void notification_queue_commit(struct notification_queue *queue) {
        queue->n_pending += n_staged(queue);
}

void notification_queue_roll_back(struct notification_queue *queue) {
        while (n_staged(queue) > 0) {
                drop_item(queue, &queue->items[--queue->n_items]);
                queue->last_sequence--;
        }
}

const struct pending_notification *notification_queue_staged(const struct notification_queue *queue,
                                                             size_t *ret_n) {
        *ret_n = n_staged(queue);
        return *ret_n > 0 ? &queue->items[queue->first + queue->n_pending] : NULL;
}

/* 3. Pending notifications */

int notification_queue_add(struct notification_queue *queue,
                           const struct pending_notification *notification) {
        int r;

        ASSERT(n_staged(queue) == 0);

        if (notification->key.length == 0 || notification->sequence == 0 ||
            (queue->n_pending > 0 &&
             notification->sequence != queue->items[queue->n_items - 1].sequence + 1))
                return -EBADMSG;

        compact_items(queue);
        r = append_item(queue, notification);
        if (r == 0)
                queue->n_pending++;
        return r;
}

void notification_queue_remove(struct notification_queue *queue, uint64_t sequence) {
        while (queue->n_pending > 0 && queue->items[queue->first].sequence <= sequence) {
                drop_item(queue, &queue->items[queue->first++]);
                queue->n_pending--;
        }
        if (sequence > queue->last_sequence) {
                ASSERT(n_staged(queue) == 0);
                queue->last_sequence = sequence;
        }
}

const struct pending_notification *notification_queue_after(const struct notification_queue *queue,
                                                            uint64_t sequence) {
        const struct pending_notification *first;
        uint64_t index = 0;

        if (queue->n_pending == 0)
                return NULL;

        first = &queue->items[queue->first];
        if (sequence >= first->sequence)
                index = sequence - first->sequence + 1;
        return index < queue->n_pending ? &first[index] : NULL;
}
