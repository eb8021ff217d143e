/* SPDX-License-Identifier: Apache-2.0 */

/* In which order the daemon executes what it was given: each client's own, and none for long before another's. */

#include "sim/turns.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/assert.h"
#include "sim/check.h"

void turns_deinit(struct turns *turns) {
        for (size_t i = 0; i < N_CLIENTS; i++)
                free(turns->waiting[i].ids);
        *turns = (struct turns){ 0 };
}

void turns_restart(struct turns *turns) {
        turns_deinit(turns);
}

void turns_add(struct turns *turns, const struct asked *asked) {
        struct turns_queue *queue = &turns->waiting[asked->client];

        ASSERT(array_reserve((void **)&queue->ids, &queue->capacity, queue->n_ids + 1,
                             sizeof(*queue->ids)) == 0);
        if (queue->n_ids == 0)
                memset(turns->n_served[asked->client], 0, sizeof(turns->n_served[asked->client]));
        queue->ids[queue->n_ids++] = asked->id;
}

void turns_take(struct turns *turns, const struct asked *asked) {
        struct turns_queue *queue = &turns->waiting[asked->client];

        CHECK(queue->n_ids > 0 && queue->ids[0] == asked->id,
              "requests of one client are executed in the order in which they came");
        queue->n_ids--;
        memmove(queue->ids, queue->ids + 1, queue->n_ids * sizeof(*queue->ids));
        memset(turns->n_served[asked->client], 0, sizeof(turns->n_served[asked->client]));

        for (size_t i = 0; i < N_CLIENTS; i++)
                if (i != asked->client && turns->waiting[i].n_ids > 0)
                        CHECK(++turns->n_served[i][asked->client] <= 1,
                              "no client has two turns while another one waits for its turn");
}
