/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The last records of a sequence, in memory. Records are numbered from 1. The oldest one makes room for
 * the next one when there are n_max, or when all have more than n_bytes_max bytes together. A number is
 * never used again: so the owner of a number notices that its record is gone.
 *
 *     struct ring ring = { .n_max = 1000, .n_bytes_max = 1 << 20 };
 *     char *text = ring_add(&ring, 3);
 *
 *     if (text)
 *             memcpy(text, "hi", 3);
 *     text = ring_find(&ring, ring.last);
 *     ring_clear(&ring);
 */
struct ring {
        size_t n_max, n_bytes_max;
        struct ring_slot *slots;      /* by number, modulo n_max; NULL before the first record */
        uint64_t before_oldest, last; /* numbers: records after before_oldest up to last may exist */
        size_t n_bytes;
};

struct ring_slot {
        void *record; /* NULL: removed, or memory was short */
        size_t n_bytes;
};

/* Free all records. Their numbers begin at 1 again. */
void ring_clear(struct ring *ring);

/*
 * Add a record of this size with the number ring->last. Returns its memory, which the caller fills;
 * NULL: memory was short, and the number has no record.
 */
void *ring_add(struct ring *ring, size_t n_bytes);

/* Return a record, or NULL if it was removed. Valid until the ring changes. */
void *ring_find(const struct ring *ring, uint64_t number);

/* Change the size of a record that exists. Returns its memory, or NULL, without a change, if it is short. */
void *ring_resize(struct ring *ring, uint64_t number, size_t n_bytes);

/* Remove a record, if it exists. */
void ring_remove(struct ring *ring, uint64_t number);
