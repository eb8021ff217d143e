/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A binary min-heap of items, ordered by deadline. The heap's array stores the deadlines, so
 * comparing deadlines does not access the items. The only field of an item that the heap accesses
 * is its position.
 *
 * Items are borrowed: remove an item before freeing it. Not thread-safe.
 */

/*
 * The position of an item that is in no heap. Each item stores its position: the caller initializes
 * it to HEAP_NONE, and then only the heap changes it.
 */
#define HEAP_NONE UINT32_MAX

struct heap_node {
        int64_t deadline;
        void *item;
};

struct heap {
        struct heap_node *nodes;
        uint32_t n_nodes;
        size_t capacity;
        uint32_t *(*position)(void *item); /* returns the address of the item's position */
};

void heap_init(struct heap *heap, uint32_t *(*position)(void *item));
void heap_deinit(struct heap *heap);

/*
 * Allocate room for n_more insertions, so that heap_insert() cannot fail. Returns 0, or -ENOMEM if
 * memory is exhausted or the heap would exceed 2^32-2 items.
 */
int heap_reserve(struct heap *heap, uint32_t n_more);

/* Insert an item that is in no heap. The caller has made room with heap_reserve(). */
void heap_insert(struct heap *heap, int64_t deadline, void *item);

/* Remove an item that is in the heap. */
void heap_remove(struct heap *heap, void *item);

/* The item with the earliest deadline, or NULL. */
void *heap_first(const struct heap *heap);

/* The earliest deadline; INT64_MAX if the heap is empty. */
int64_t heap_first_deadline(const struct heap *heap);

/* The deadline of an item that is in the heap. */
int64_t heap_deadline(const struct heap *heap, void *item);
