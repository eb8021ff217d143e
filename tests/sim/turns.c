/* SPDX-License-Identifier: Apache-2.0 */

/* The order of execution: requests of one client in order, clients round-robin. */

#include "sim/turns.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"
#include "sim/check.h"

void turns_deinit(struct turns *turns) {
        for (size_t i = 0; i < N_CLIENTS; i++)
                free(turns->waiting[i].entries);
        *turns = (struct turns){ 0 };
}

void turns_restart(struct turns *turns) {
        turns_deinit(turns);
}

/* The client begins to wait for its next turn. */
static void restart_count(struct turns *turns, size_t client) {
        memset(turns->n_served[client], 0, sizeof(turns->n_served[client]));
        if (turns->waiting[client].n_entries == 0)
                turns->n_disconnects[client] = 0;
}

/* Whether a request waits that the pipeline will execute. */
static bool waits_for_certain(const struct turns_queue *queue) {
        for (size_t i = 0; i < queue->n_entries; i++)
                if (!queue->entries[i].may_be_dropped)
                        return true;
        return false;
}

/* The first entry of this request, or n_entries if an entry before it cannot have been dropped. */
static size_t find_entry(const struct turns_queue *queue, size_t id) {
        for (size_t i = 0; i < queue->n_entries; i++) {
                if (queue->entries[i].id == id)
                        return i;
                if (!queue->entries[i].may_be_dropped)
                        break;
        }
        return queue->n_entries;
}

static void remove_up_to(struct turns_queue *queue, size_t i) {
        queue->n_entries -= i + 1;
        memmove(queue->entries, queue->entries + i + 1, queue->n_entries * sizeof(*queue->entries));
}

void turns_add_disconnect(struct turns *turns, size_t client) {
        turns->n_disconnects[client]++;
}

void turns_add(struct turns *turns, const struct asked *asked, bool may_be_dropped) {
        struct turns_queue *queue = &turns->waiting[asked->client];

        ASSERT(array_reserve((void **)&queue->entries, &queue->capacity, queue->n_entries + 1,
                             sizeof(*queue->entries)) == 0);
        if (!waits_for_certain(queue))
                restart_count(turns, asked->client);
        queue->entries[queue->n_entries++] = (struct turns_entry){ asked->id, may_be_dropped };
}

void turns_drop_last(struct turns *turns, const struct asked *asked) {
        turns->waiting[asked->client].n_entries--;
}

void turns_take(struct turns *turns, const struct asked *asked) {
        struct turns_queue *queue = &turns->waiting[asked->client];
        size_t i = find_entry(queue, asked->id);

        CHECK(i < queue->n_entries, "requests of one client are executed in the order of their arrival");
        remove_up_to(queue, i);
        for (i = 0; i < queue->n_entries; i++) /* it may have been another copy that was executed */
                queue->entries[i].may_be_dropped |= queue->entries[i].id == asked->id;
        restart_count(turns, asked->client);
        for (size_t other = 0; other < N_CLIENTS; other++)
                if (other != asked->client && waits_for_certain(&turns->waiting[other]))
                        CHECK(++turns->n_served[other][asked->client] <= 1 + turns->n_disconnects[other],
                              "no client gets two turns while another client waits");
}
