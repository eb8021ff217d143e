/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A binary heap of deadlines: which item's comes first. The deadline stands in the heap's own array, so that
 * sifting touches no item's memory but to tell it where it now is.
 *
 * Ownership: items are borrowed; whoever frees one takes it out first. Not thread-safe.
 */

/* An item's place in a heap, or HEAP_NONE. The item keeps it, the heap writes it. */
#define HEAP_NONE UINT32_MAX

struct heap_node {
        int64_t deadline;
        void *item;
};

struct heap {
        struct heap_node *nodes;
        uint32_t n_nodes;
        uint32_t capacity;
        uint32_t *(*position)(void *item); /* where the item keeps its place */
};

void heap_init(struct heap *heap, uint32_t *(*position)(void *item));
void heap_deinit(struct heap *heap);

/*
 * Makes room for n_more insertions, so that heap_insert() cannot fail. Returns 0 or -ENOMEM, which also
 * stands for more than 2^32-2 items.
 */
int heap_reserve(struct heap *heap, uint32_t n_more);

/* There must be room: heap_reserve(). The item must not be in a heap. */
void heap_insert(struct heap *heap, int64_t deadline, void *item);

/* Takes out an item that is in the heap. */
void heap_remove(struct heap *heap, void *item);

/* The item with the earliest deadline, or NULL. */
void *heap_first(const struct heap *heap);

/* The earliest deadline, INT64_MAX where the heap is empty. */
int64_t heap_first_deadline(const struct heap *heap);

/* The deadline of an item that is in the heap. */
int64_t heap_deadline(const struct heap *heap, void *item);

/* The array's bytes. */
uint64_t heap_bytes(const struct heap *heap);
