/* SPDX-License-Identifier: Apache-2.0 */

#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/assert.h"

void heap_init(struct heap *heap, uint32_t *(*position)(void *item)) {
        *heap = (struct heap){ .position = position };
}

void heap_deinit(struct heap *heap) {
        free(heap->nodes);
        *heap = (struct heap){ 0 };
}

int heap_reserve(struct heap *heap, uint32_t n_more) {
        if (heap->capacity - heap->n_nodes >= n_more)
                return 0;
        if (n_more > HEAP_NONE - 1 - heap->n_nodes)
                return -ENOMEM;
        return array_reserve((void **)&heap->nodes, &heap->capacity, (size_t)heap->n_nodes + n_more,
                             sizeof(*heap->nodes));
}

static void place_item(struct heap *heap, uint32_t at, struct heap_node node) {
        heap->nodes[at] = node;
        *heap->position(node.item) = at;
}

/*
 * Move node from `at` towards the root: while its parent has a later deadline, the parent moves
 * down one level.
 */
static void sift_up(struct heap *heap, uint32_t at, struct heap_node node) {
        while (at > 0) {
                uint32_t parent = (at - 1) / 2;

                if (heap->nodes[parent].deadline <= node.deadline)
                        break;
                place_item(heap, at, heap->nodes[parent]);
                at = parent;
        }
        place_item(heap, at, node);
}

/*
 * Move node from `at` towards the leaves: while it has a child with an earlier deadline, its
 * earliest child moves up one level.
 */
static void sift_down(struct heap *heap, uint32_t at, struct heap_node node) {
        for (;;) {
                uint64_t child = 2 * (uint64_t)at + 1;

                if (child >= heap->n_nodes)
                        break;
                if (child + 1 < heap->n_nodes &&
                    heap->nodes[child + 1].deadline < heap->nodes[child].deadline)
                        child++;
                if (heap->nodes[child].deadline >= node.deadline)
                        break;
                place_item(heap, at, heap->nodes[child]);
                at = (uint32_t)child;
        }
        place_item(heap, at, node);
}

void heap_insert(struct heap *heap, int64_t deadline, void *item) {
        ASSERT(heap->n_nodes < heap->capacity);
        ASSERT(*heap->position(item) == HEAP_NONE);

        sift_up(heap, heap->n_nodes++, (struct heap_node){ deadline, item });
}

void heap_remove(struct heap *heap, void *item) {
        uint32_t at = *heap->position(item);
        struct heap_node last;

        ASSERT(at < heap->n_nodes && heap->nodes[at].item == item);

        *heap->position(item) = HEAP_NONE;
        last = heap->nodes[--heap->n_nodes];
        if (at == heap->n_nodes)
                return;

        if (at > 0 && heap->nodes[(at - 1) / 2].deadline > last.deadline)
                sift_up(heap, at, last);
        else
                sift_down(heap, at, last);
}

void *heap_first(const struct heap *heap) {
        return heap->n_nodes > 0 ? heap->nodes[0].item : NULL;
}

int64_t heap_first_deadline(const struct heap *heap) {
        return heap->n_nodes > 0 ? heap->nodes[0].deadline : INT64_MAX;
}

int64_t heap_deadline(const struct heap *heap, void *item) {
        uint32_t at = *heap->position(item);

        ASSERT(at < heap->n_nodes && heap->nodes[at].item == item);
        return heap->nodes[at].deadline;
}
