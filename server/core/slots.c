/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One slab is filled before the next one is, and those that were full come last: so where items go in about the order
 * in which they came, slabs become empty one after the other.
 */

#include "core/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/array.h"
#include "common/assert.h"

#define NO_SLOT UINT32_MAX

/* A free slot that has been taken before holds the number of the next one, within the slab. */
struct slab {
        struct slab *previous, *next; /* with room; utlist */
        uint32_t number;
        uint32_t n_taken;
        uint32_t n_touched; /* from here on none has been taken yet */
        uint32_t first_free;
        uint8_t items[] __attribute__((aligned(16)));
};

static void *item_of(const struct slots *slots, struct slab *slab, uint32_t within) {
        return slab->items + within * slots->item_size;
}

void slots_init(struct slots *slots, size_t item_size) {
        ASSERT(item_size >= sizeof(uint32_t));

        *slots = (struct slots){ .item_size = item_size };
}

void slots_deinit(struct slots *slots) {
        for (size_t i = 0; i < slots->n_slabs; i++)
                free(slots->slabs[i]);
        free(slots->slabs);
        *slots = (struct slots){ 0 };
}

static int add_slab(struct slots *slots, size_t number) {
        struct slab *slab;
        int r;

        r = array_reserve((void **)&slots->slabs, &slots->slabs_capacity, number + 1, sizeof(*slots->slabs));
        if (r < 0)
                return r;
        slab = malloc(sizeof(*slab) + SLOTS_A_SLAB * slots->item_size);
        if (!slab)
                return -ENOMEM;

        *slab = (struct slab){ .number = (uint32_t)number, .first_free = NO_SLOT };
        while (slots->n_slabs <= number)
                slots->slabs[slots->n_slabs++] = NULL;
        slots->slabs[number] = slab;
        DL_APPEND2(slots->with_room, slab, previous, next);
        return 0;
}

int slots_reserve(struct slots *slots) {
        size_t number = 0;

        if (slots->with_room)
                return 0;
        while (number < slots->n_slabs && slots->slabs[number])
                number++;
        return add_slab(slots, number);
}

static void count_taken(struct slots *slots, struct slab *slab) {
        if (++slab->n_taken == SLOTS_A_SLAB)
                DL_DELETE2(slots->with_room, slab, previous, next);
}

void *slots_take(struct slots *slots, uint32_t *ret_slot) {
        struct slab *slab = slots->with_room;
        uint32_t within;

        ASSERT(slab);

        within = slab->first_free;
        if (within == NO_SLOT)
                within = slab->n_touched++;
        else
                memcpy(&slab->first_free, item_of(slots, slab, within), sizeof(slab->first_free));
        count_taken(slots, slab);

        *ret_slot = slab->number * SLOTS_A_SLAB + within;
        return item_of(slots, slab, within);
}

static void put_free(struct slots *slots, struct slab *slab, uint32_t within) {
        memcpy(item_of(slots, slab, within), &slab->first_free, sizeof(slab->first_free));
        slab->first_free = within;
}

int slots_take_at(struct slots *slots, uint32_t slot, void **ret_item) {
        uint32_t number = slot / SLOTS_A_SLAB, within = slot % SLOTS_A_SLAB;
        struct slab *slab;
        int r;

        if (number >= slots->n_slabs) {
                r = add_slab(slots, number);
                if (r < 0)
                        return r;
        }

        slab = slots->slabs[number];
        if (!slab || within < slab->n_touched)
                return -EBADMSG;

        while (slab->n_touched < within)
                put_free(slots, slab, slab->n_touched++);
        slab->n_touched++;
        count_taken(slots, slab);
        *ret_item = item_of(slots, slab, within);
        return 0;
}

void slots_release(struct slots *slots, uint32_t slot) {
        struct slab *slab = slots->slabs[slot / SLOTS_A_SLAB];

        ASSERT(slab->n_taken > 0);

        if (slab->n_taken-- == SLOTS_A_SLAB)
                DL_APPEND2(slots->with_room, slab, previous, next);
        put_free(slots, slab, slot % SLOTS_A_SLAB);

        if (slab->n_taken == 0 && slots->with_room->next) {
                DL_DELETE2(slots->with_room, slab, previous, next);
                slots->slabs[slab->number] = NULL;
                free(slab);
        }
}

void *slots_at(const struct slots *slots, uint32_t slot) {
        return item_of(slots, slots->slabs[slot / SLOTS_A_SLAB], slot % SLOTS_A_SLAB);
}

uint64_t slots_bytes(const struct slots *slots) {
        uint64_t n_slabs = 0;

        for (size_t i = 0; i < slots->n_slabs; i++)
                n_slabs += slots->slabs[i] != NULL;
        return n_slabs * (sizeof(struct slab) + SLOTS_A_SLAB * slots->item_size);
}
