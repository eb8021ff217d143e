/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/inbox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

struct inbox_item {
        struct fair_item waiting; /* first: a pointer to it is a pointer to the item */
        struct inbox_item *next_early;
        struct message *message;
        int64_t arrived_ns;
};

static struct inbox_item *first_item(const struct inbox *inbox) {
        return (struct inbox_item *)fair_queues_first(&inbox->queues);
}

static size_t item_size(const struct message *message) {
        return sizeof(struct inbox_item) + message_size(message);
}

static struct inbox_item *item_new(const struct message *message, int64_t arrived_ns) {
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

static void item_free(struct inbox_item *item) {
        free(item->message);
        free(item);
}

void inbox_deinit(struct inbox *inbox) {
        while (!inbox_is_empty(inbox))
                inbox_drop(inbox);
        while (inbox->first_early)
                inbox_drop_early(inbox);
        fair_queues_deinit(&inbox->queues);
}

static int open_queue(struct inbox *inbox, struct slice client, size_t size, size_t n_bytes_max,
                      struct fair_queue **ret_queue) {
        struct fair_queue *queue;
        int r;

        r = fair_queues_open(&inbox->queues, client, &queue);
        if (r < 0)
                return r;
        if (!fair_queues_has_room(&inbox->queues, queue, size, n_bytes_max)) {
                fair_queues_close(&inbox->queues, queue);
                return -ENOBUFS;
        }

        *ret_queue = queue;
        return 0;
}

int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max) {
        size_t size = item_size(message);
        struct fair_queue *queue;
        struct inbox_item *item;
        int r;

        r = open_queue(inbox, client, size, n_bytes_max, &queue);
        if (r < 0)
                return r;

        item = item_new(message, arrived_ns);
        if (item)
                fair_queues_add(&inbox->queues, queue, &item->waiting, size);
        fair_queues_close(&inbox->queues, queue);
        return item ? 0 : -ENOMEM;
}

bool inbox_is_empty(const struct inbox *inbox) {
        return !first_item(inbox);
}

const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns) {
        const struct inbox_item *item = first_item(inbox);

        ASSERT(item);

        *ret_arrived_ns = item->arrived_ns;
        return item->message;
}

void inbox_drop(struct inbox *inbox) {
        struct inbox_item *item = first_item(inbox);

        ASSERT(item);

        fair_queues_take(&inbox->queues);
        item_free(item);
}

int inbox_add_early(struct inbox *inbox, const struct message *message, int64_t arrived_ns,
                    size_t n_bytes_max) {
        size_t n_bytes = inbox->queues.n_bytes + inbox->n_early_bytes, size = item_size(message);
        struct inbox_item *item;

        if (n_bytes > n_bytes_max || size > n_bytes_max - n_bytes)
                return -ENOBUFS;

        item = item_new(message, arrived_ns);
        if (!item)
                return -ENOMEM;

        if (inbox->first_early)
                inbox->last_early->next_early = item;
        else
                inbox->first_early = item;
        inbox->last_early = item;
        inbox->n_early_bytes += size;
        return 0;
}

struct message *inbox_first_early(const struct inbox *inbox) {
        return inbox->first_early ? inbox->first_early->message : NULL;
}

static struct inbox_item *take_early(struct inbox *inbox) {
        struct inbox_item *item = inbox->first_early;

        ASSERT(item);

        inbox->first_early = item->next_early;
        inbox->n_early_bytes -= item_size(item->message);
        return item;
}

int inbox_admit_early(struct inbox *inbox, struct slice client, size_t n_bytes_max) {
        size_t size = item_size(inbox->first_early->message);
        struct fair_queue *queue;
        int r;

        r = open_queue(inbox, client, size, n_bytes_max, &queue);
        if (r < 0)
                return r;

        fair_queues_add(&inbox->queues, queue, &take_early(inbox)->waiting, size);
        fair_queues_close(&inbox->queues, queue);
        return 0;
}

void inbox_drop_early(struct inbox *inbox) {
        item_free(take_early(inbox));
}
