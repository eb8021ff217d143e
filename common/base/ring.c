/* SPDX-License-Identifier: Apache-2.0 */

#include "base/ring.h"

#include <stdlib.h>

static struct ring_slot *slot_of(const struct ring *ring, uint64_t number) {
        return &ring->slots[number % ring->n_max];
}

static void free_record(struct ring *ring, struct ring_slot *slot) {
        ring->n_bytes -= slot->n_bytes;
        free(slot->record);
        *slot = (struct ring_slot){ 0 };
}

static void remove_oldest(struct ring *ring) {
        free_record(ring, slot_of(ring, ++ring->before_oldest));
}

/* Remove the oldest records until the limits are met, for their bytes only those before this number. */
static void make_room(struct ring *ring, uint64_t number) {
        while (ring->last - ring->before_oldest > ring->n_max ||
               (ring->n_bytes > ring->n_bytes_max && ring->before_oldest + 1 < number))
                remove_oldest(ring);
}

void ring_clear(struct ring *ring) {
        while (ring->before_oldest < ring->last)
                remove_oldest(ring);
        free(ring->slots);
        *ring = (struct ring){ .n_max = ring->n_max, .n_bytes_max = ring->n_bytes_max };
}

void *ring_add(struct ring *ring, size_t n_bytes) {
        struct ring_slot *slot;

        ring->last++;
        if (!ring->slots)
                ring->slots = calloc(ring->n_max, sizeof(*ring->slots));
        if (!ring->slots) {
                ring->before_oldest = ring->last;
                return NULL;
        }
        ring->n_bytes += n_bytes;
        make_room(ring, ring->last);

        slot = slot_of(ring, ring->last);
        *slot = (struct ring_slot){ malloc(n_bytes), n_bytes };
        if (!slot->record)
                free_record(ring, slot);
        return slot->record;
}

void *ring_find(const struct ring *ring, uint64_t number) {
        return number > ring->before_oldest && number <= ring->last ? slot_of(ring, number)->record : NULL;
}

void *ring_resize(struct ring *ring, uint64_t number, size_t n_bytes) {
        struct ring_slot *slot = slot_of(ring, number);
        void *record = realloc(slot->record, n_bytes);

        if (!record)
                return NULL;
        ring->n_bytes += n_bytes - slot->n_bytes;
        *slot = (struct ring_slot){ record, n_bytes };
        make_room(ring, number);
        return record;
}

void ring_remove(struct ring *ring, uint64_t number) {
        if (ring_find(ring, number))
                free_record(ring, slot_of(ring, number));
}
