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
}

/* The first request that the pipeline will execute, or n_entries. */
static size_t find_certain(const struct turns_queue *queue) {
        size_t i = 0;

        while (i < queue->n_entries && queue->entries[i].may_be_dropped)
                i++;
        return i;
}

static bool waits_for_certain(const struct turns_queue *queue) {
        return find_certain(queue) < queue->n_entries;
}

/* The turns until the next request is executed: each disconnect before it takes a turn too. */
static size_t n_turns_max(const struct turns_queue *queue) {
        size_t n = 1, certain = find_certain(queue);

        for (size_t i = 0; i < certain; i++)
                n += queue->entries[i].id == NONE;
        return n;
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

static void append(struct turns_queue *queue, struct turns_entry entry) {
        ASSERT(array_reserve((void **)&queue->entries, &queue->capacity, queue->n_entries + 1,
                             sizeof(*queue->entries)) == 0);
        queue->entries[queue->n_entries++] = entry;
}

void turns_add(struct turns *turns, const struct sim_request *request) {
        struct turns_queue *queue = &turns->waiting[request->client];

        if (!waits_for_certain(queue))
                restart_count(turns, request->client);
        append(queue, (struct turns_entry){ request->id, false });
}

void turns_add_disconnect(struct turns *turns, size_t client) {
        append(&turns->waiting[client], (struct turns_entry){ NONE, true });
}

void turns_drop_last(struct turns *turns, size_t client) {
        turns->waiting[client].n_entries--;
}

void turns_take(struct turns *turns, const struct sim_request *request) {
        struct turns_queue *queue = &turns->waiting[request->client];
        size_t i = find_entry(queue, request->id);

        CHECK(i < queue->n_entries, "requests of one client are executed in the order of their arrival");
        remove_up_to(queue, i);
        for (i = 0; i < queue->n_entries; i++) /* the pipeline may have executed another copy */
                queue->entries[i].may_be_dropped |= queue->entries[i].id == request->id;
        restart_count(turns, request->client);
        for (size_t other = 0; other < N_CLIENTS; other++)
                if (other != request->client && waits_for_certain(&turns->waiting[other]))
                        CHECK(++turns->n_served[other][request->client] <=
                                      n_turns_max(&turns->waiting[other]),
                              "no client gets two turns while another client waits");
}
