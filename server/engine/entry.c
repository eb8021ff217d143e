/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/entry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"

/* malloc()'s header and, on average, half of its rounding; one item's share of the buckets. */
#define ALLOCATION_OVERHEAD 16
#define BUCKET_OVERHEAD     8

#define PART_LENGTH_MAX ((UINT32_C(1) << 28) - 1) /* as long as an MQTT packet can be */

/* A fencing token inside an entry; its node id follows. */
struct fence_header {
        int64_t wall_ms;
        uint64_t counter;
        uint64_t node_length;
};

static size_t fence_size(const struct hlc *fence) {
        return fence ? sizeof(struct fence_header) + fence->node.length : 0;
}

/* Where it begins; not aligned. */
static const uint8_t *fence_of(const struct entry *entry) {
        return entry->bytes + entry->hh.keylen + entry->value_length;
}

static struct fence_header fence_header_of(const struct entry *entry) {
        struct fence_header header;

        memcpy(&header, fence_of(entry), sizeof(header));
        return header;
}

static void write_fence(uint8_t *at, const struct hlc *fence) {
        struct fence_header header = { fence->wall_ms, fence->counter, fence->node.length };

        memcpy(at, &header, sizeof(header));
        memcpy(at + sizeof(header), fence->node.data, fence->node.length);
}

/* The header without the padding at its end. */
static uint64_t size_of(size_t key_length, size_t value_length, size_t fence_length) {
        return offsetof(struct entry, bytes) + key_length + value_length + fence_length;
}

static uint64_t cost_of(size_t key_length, size_t value_length, size_t fence_length) {
        return size_of(key_length, value_length, fence_length) + ALLOCATION_OVERHEAD + BUCKET_OVERHEAD;
}

int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence) {
        struct entry *entry;
        uint8_t *at;

        if (key.length > PART_LENGTH_MAX || value.length > PART_LENGTH_MAX ||
            fence_size(fence) > PART_LENGTH_MAX)
                return -ENOMEM;

        entry = malloc(size_of(key.length, value.length, fence_size(fence)));
        if (!entry)
                return -ENOMEM;

        entry->hh = (UT_hash_handle){ .key = entry->bytes, .keylen = (unsigned int)key.length };
        entry->version_wall_ms = version.wall_ms;
        entry->version_counter = version.counter & INT32_MAX;
        entry->has_fence = fence != NULL;
        entry->n_references = 1;
        entry->is_persistent = false;
        entry->expiry_position = HEAP_NONE;
        entry->value_length = (uint32_t)value.length;

        at = mempcpy(entry->bytes, key.data, key.length);
        if (value.length > 0)
                at = mempcpy(at, value.data, value.length);
        if (fence)
                write_fence(at, fence);

        *ret_entry = entry;
        return 0;
}

struct entry *entry_ref(struct entry *entry) {
        entry->n_references++;
        return entry;
}

struct entry *entry_unref(struct entry *entry) {
        if (!entry)
                return NULL;

        ASSERT(entry->n_references > 0);
        if (--entry->n_references == 0)
                free(entry);
        return NULL;
}

struct slice entry_key(const struct entry *entry) {
        return (struct slice){ entry->bytes, entry->hh.keylen };
}

struct slice entry_value(const struct entry *entry) {
        return (struct slice){ entry->bytes + entry->hh.keylen, entry->value_length };
}

struct version entry_version(const struct entry *entry) {
        return (struct version){ entry->version_wall_ms, entry->version_counter };
}

bool entry_fence(const struct entry *entry, struct hlc *ret_fence) {
        struct fence_header header;

        if (!entry->has_fence)
                return false;

        header = fence_header_of(entry);
        *ret_fence = (struct hlc){
                .wall_ms = header.wall_ms,
                .counter = header.counter,
                .node = { fence_of(entry) + sizeof(header), header.node_length },
        };
        return true;
}

uint64_t entry_cost(size_t key_length, size_t value_length, const struct hlc *fence) {
        return cost_of(key_length, value_length, fence_size(fence));
}

uint64_t entry_cost_of(const struct entry *entry) {
        size_t fence_length =
                entry->has_fence ? sizeof(struct fence_header) + fence_header_of(entry).node_length : 0;

        return cost_of(entry->hh.keylen, entry->value_length, fence_length);
}
