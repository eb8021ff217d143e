/* SPDX-License-Identifier: Apache-2.0 */

#include "pipeline/arrivals.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

struct arrival {
        struct arrival *next;
        struct message *message;
        int64_t arrived_ns;
};

static size_t arrival_size(const struct message *message) {
        return sizeof(struct arrival) + message_size(message);
}

void arrivals_deinit(struct arrivals *arrivals) {
        while (arrivals->first)
                arrivals_drop(arrivals);
}

int arrivals_add(struct arrivals *arrivals, const struct message *message, int64_t arrived_ns,
                 size_t n_bytes_max) {
        struct arrival *arrival;
        size_t size = arrival_size(message);

        if (size > n_bytes_max || arrivals->n_bytes > n_bytes_max - size)
                return -ENOBUFS;

        arrival = malloc(sizeof(*arrival));
        if (!arrival)
                return -ENOMEM;

        *arrival = (struct arrival){ .message = message_copy(message), .arrived_ns = arrived_ns };
        if (!arrival->message) {
                free(arrival);
                return -ENOMEM;
        }

        if (arrivals->last)
                arrivals->last->next = arrival;
        else
                arrivals->first = arrival;
        arrivals->last = arrival;
        arrivals->n_bytes += size;
        return 0;
}

const struct message *arrivals_first(const struct arrivals *arrivals, int64_t *ret_arrived_ns) {
        if (!arrivals->first)
                return NULL;

        *ret_arrived_ns = arrivals->first->arrived_ns;
        return arrivals->first->message;
}

void arrivals_drop(struct arrivals *arrivals) {
        struct arrival *arrival = arrivals->first;

        ASSERT(arrival);

        arrivals->first = arrival->next;
        if (!arrivals->first)
                arrivals->last = NULL;
        arrivals->n_bytes -= arrival_size(arrival->message);
        free(arrival->message);
        free(arrival);
}
