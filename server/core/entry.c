/* SPDX-License-Identifier: Apache-2.0 */

#include "core/entry.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/heap.h"
#include "common/parse.h"
#include "core/cells.h"
#include "core/table.h"

/*
 * What memory takes beside what was asked for. malloc(): its header, and on average half of its rounding; a cell: half
 * of its rounding, and its share of what is free in the slabs.
 */
#define ALLOCATION_OVERHEAD 16
#define CELL_OVERHEAD       8

#define KEY_LENGTH_MAX ((UINT32_C(1) << 28) - 1)
#define PART_MAX       UINT32_MAX /* of the rest: so that no sum overflows */

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
        return entry_value(entry).data + entry_value(entry).length + 2;
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

/* Writes "$LEN\r\n". Returns its length. */
static size_t format_blob_header(char *header, size_t value_length) {
        size_t length;

        header[0] = '$';
        length = 1 + format_uint64(header + 1, value_length, 1);
        header[length++] = '\r';
        header[length++] = '\n';
        return length;
}

/* Under ASan each is an allocation of its own: so that it sees leaks, and what is used when it has gone. */
#ifdef __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#define take_cell(size) NULL
#else
#define take_cell(size) cells_take(size)
#endif

static struct entry *allocate(size_t size) {
        struct entry *entry = take_cell(size);
        bool is_cell = entry;

        if (!entry)
                entry = malloc(size);
        if (entry)
                entry->is_cell = is_cell;
        return entry;
}

static void release(struct entry *entry) {
        if (entry->is_cell)
                cells_release(entry);
        else
                free(entry);
}

static uint64_t cost_of(size_t size) {
        return size + (size <= CELL_BYTES_MAX ? CELL_OVERHEAD : ALLOCATION_OVERHEAD) + TABLE_ITEM_OVERHEAD;
}

int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence) {
        char header[PARSE_UINT64_DIGITS_MAX + 3];
        size_t header_length = format_blob_header(header, value.length);
        size_t blob_length = header_length + value.length + 2;
        struct entry *entry;
        uint8_t *at;

        if (key.length > KEY_LENGTH_MAX || blob_length > PART_MAX || fence_size(fence) > PART_MAX)
                return -ENOMEM;

        entry = allocate(sizeof(struct entry) + key.length + blob_length + fence_size(fence));
        if (!entry)
                return -ENOMEM;

        entry->version_wall_ms = version.wall_ms;
        entry->version_counter = version.counter;
        entry->n_references = 1;
        entry->is_persistent = false;
        entry->expiry_position = HEAP_NONE;
        entry->key_length = key.length & KEY_LENGTH_MAX;
        entry->has_fence = fence;

        at = mempcpy(entry->bytes, key.data, key.length);
        at = mempcpy(at, header, header_length);
        if (value.length > 0)
                at = mempcpy(at, value.data, value.length);
        at = mempcpy(at, "\r\n", 2);
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
                release(entry);
        return NULL;
}

struct slice entry_key(const struct entry *entry) {
        return (struct slice){ entry->bytes, entry->key_length };
}

struct slice entry_blob(const struct entry *entry) {
        const uint8_t *begin = entry->bytes + entry->key_length;
        struct slice value = entry_value(entry);

        return (struct slice){ begin, (size_t)(value.data - begin) + value.length + 2 };
}

struct slice entry_value(const struct entry *entry) {
        const uint8_t *at = entry->bytes + entry->key_length + 1;
        size_t length = 0;

        for (; *at != '\r'; at++)
                length = 10 * length + (size_t)(*at - '0');
        return (struct slice){ at + 2, length };
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
        char header[PARSE_UINT64_DIGITS_MAX + 3];

        return cost_of(sizeof(struct entry) + key_length + format_blob_header(header, value_length) +
                       value_length + 2 + fence_size(fence));
}

uint64_t entry_cost_of(const struct entry *entry) {
        size_t fence_length =
                entry->has_fence ? sizeof(struct fence_header) + fence_header_of(entry).node_length : 0;

        return cost_of(sizeof(struct entry) + entry->key_length + entry_blob(entry).length + fence_length);
}
