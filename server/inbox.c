/* SPDX-License-Identifier: Apache-2.0 */

#include "inbox.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"

struct inbox_item {
        struct inbox_item *next;
        struct message *message;
        int64_t arrived_ns;
};

static size_t item_size(const struct message *message) {
        return sizeof(struct inbox_item) + message_size(message);
}

void inbox_deinit(struct inbox *inbox) {
        while (inbox->first)
                inbox_drop(inbox);
}

int inbox_add(struct inbox *inbox, const struct message *message, int64_t arrived_ns, size_t n_bytes_max) {
        struct inbox_item *item;
        size_t size = item_size(message);

        if (size > n_bytes_max || inbox->n_bytes > n_bytes_max - size)
                return -ENOBUFS;

        item = malloc(sizeof(*item));
        if (!item)
                return -ENOMEM;

        *item = (struct inbox_item){ .message = message_copy(message), .arrived_ns = arrived_ns };
        if (!item->message) {
                free(item);
                return -ENOMEM;
        }

        if (inbox->last)
                inbox->last->next = item;
        else
                inbox->first = item;
        inbox->last = item;
        inbox->n_bytes += size;
        return 0;
}

bool inbox_is_empty(const struct inbox *inbox) {
        return !inbox->first;
}

const struct message *inbox_first(const struct inbox *inbox, int64_t *ret_arrived_ns) {
        ASSERT(inbox->first);

        *ret_arrived_ns = inbox->first->arrived_ns;
        return inbox->first->message;
}

void inbox_drop(struct inbox *inbox) {
        struct inbox_item *item = inbox->first;

        ASSERT(item);

        inbox->first = item->next;
        if (!inbox->first)
                inbox->last = NULL;
        inbox->n_bytes -= item_size(item->message);
        free(item->message);
        free(item);
}
