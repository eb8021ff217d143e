/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/inbox.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

struct inbox_item {
        struct fair_item waiting; /* first: a pointer to it is a pointer to the item */
        struct message *message;
        int64_t arrived_ns;
};

static struct inbox_item *first_item(const struct inbox *inbox) {
        return (struct inbox_item *)fair_queues_first(&inbox->queues);
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

void inbox_deinit(struct inbox *inbox) {
        while (!inbox_is_empty(inbox))
                inbox_drop(inbox);
        fair_queues_deinit(&inbox->queues);
}

int inbox_add(struct inbox *inbox, struct slice client, const struct message *message, int64_t arrived_ns,
              size_t n_bytes_max) {
        size_t size = sizeof(struct inbox_item) + message_size(message);
        struct inbox_item *item;
        struct fair_queue *queue;
        int r;

        r = fair_queues_open(&inbox->queues, client, &queue);
        if (r < 0)
                return r;

        if (!fair_queues_has_room(&inbox->queues, queue, size, n_bytes_max))
                r = -ENOBUFS;
        else if (!(item = item_new(message, arrived_ns)))
                r = -ENOMEM;
        else
                fair_queues_add(&inbox->queues, queue, &item->waiting, size);
        fair_queues_close(&inbox->queues, queue);
        return r;
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
        free(item->message);
        free(item);
}
