/* SPDX-License-Identifier: Apache-2.0 */

#include "core/slots.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

void slots_init(struct slots *slots, size_t item_size) {
        *slots = (struct slots){ 0 };
        slab_pool_init(&slots->pool, (uint32_t)item_size, SLOTS_A_SLAB);
}

void slots_deinit(struct slots *slots) {
        for (size_t i = 0; i < slots->n_slabs; i++)
                if (slots->slabs[i])
                        slab_free(slots->slabs[i]);
        free(slots->slabs);
        *slots = (struct slots){ 0 };
}

static int add_slab(struct slots *slots, size_t number) {
        struct slab *slab;
        int r;

        r = array_reserve((void **)&slots->slabs, &slots->slabs_capacity, number + 1, sizeof(*slots->slabs));
        if (r < 0)
                return r;
        slab = slab_pool_add(&slots->pool);
        if (!slab)
                return -ENOMEM;

        slab->number = (uint32_t)number;
        while (slots->n_slabs <= number)
                slots->slabs[slots->n_slabs++] = NULL;
        slots->slabs[number] = slab;
        return 0;
}

int slots_reserve(struct slots *slots) {
        size_t number = 0;

        if (slots->pool.with_room)
                return 0;
        while (number < slots->n_slabs && slots->slabs[number])
                number++;
        return add_slab(slots, number);
}

void *slots_take(struct slots *slots, uint32_t *ret_slot) {
        uint8_t *item = slab_take(&slots->pool);
        const struct slab *slab = slab_of(item);

        *ret_slot = slab->number * SLOTS_A_SLAB + (uint32_t)(item - slab->cells) / slots->pool.cell_size;
        return item;
}

int slots_take_at(struct slots *slots, uint32_t slot, void **ret_item) {
        uint32_t number = slot / SLOTS_A_SLAB;
        struct slab *slab;
        int r;

        if (number >= slots->n_slabs) {
                r = add_slab(slots, number);
                if (r < 0)
                        return r;
        }

        slab = slots->slabs[number];
        return slab && slab_take_nth(slab, slot % SLOTS_A_SLAB, ret_item) ? 0 : -EBADMSG;
}

void slots_release(struct slots *slots, uint32_t slot) {
        if (slab_release(slots_at(slots, slot)))
                slots->slabs[slot / SLOTS_A_SLAB] = NULL;
}

void *slots_at(const struct slots *slots, uint32_t slot) {
        return slots->slabs[slot / SLOTS_A_SLAB]->cells + slot % SLOTS_A_SLAB * slots->pool.cell_size;
}

uint64_t slots_bytes(const struct slots *slots) {
        uint64_t n_slabs = 0;

        for (size_t i = 0; i < slots->n_slabs; i++)
                n_slabs += slots->slabs[i] != NULL;
        return n_slabs * (sizeof(struct slab) + SLOTS_A_SLAB * slots->pool.cell_size);
}
