/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/slab.h"

/*
 * Items of one size, each in a slot whose number and address stay as they are. They come from slabs, so that one more
 * costs no allocation of its own; a slab that is empty is given back.
 */
struct slots {
        struct slab_pool pool;
        struct slab **slabs; /* by their number; NULL: not there now */
        size_t n_slabs, slabs_capacity;
};

/* What a slab holds. */
#define SLOTS_A_SLAB 1024

/* item_size: at least 4, and so that SLOTS_A_SLAB of them are at most SLAB_CELLS_MAX. Stays where it is. */
void slots_init(struct slots *slots, size_t item_size);
void slots_deinit(struct slots *slots);

/* Returns 0 or -ENOMEM. After 0 the next slots_take() cannot fail. */
int slots_reserve(struct slots *slots);

/* A slot that is free: *ret_slot is its number, what it holds is anything. There must be room: slots_reserve(). */
void *slots_take(struct slots *slots, uint32_t *ret_slot);

/*
 * Takes this slot. Slots are taken so in ascending order, before the first slots_take(). Returns 0, -ENOMEM, or
 * -EBADMSG where they are not.
 */
int slots_take_at(struct slots *slots, uint32_t slot, void **ret_item);

/* Frees a slot that was taken. */
void slots_release(struct slots *slots, uint32_t slot);

/* What is in a slot that was taken. */
void *slots_at(const struct slots *slots, uint32_t slot);

/* What the slabs take, in bytes. */
uint64_t slots_bytes(const struct slots *slots);
