/* SPDX-License-Identifier: Apache-2.0 */

#include "core/entry.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"
#include "common/heap.h"
#include "common/parse.h"

/* What an allocation takes beside what was asked for: its header, and on average half of its rounding. */
#define ALLOCATION_OVERHEAD 16

/* A fencing token inside an entry: the two numbers, then the node id. */
#define FENCE_NUMBERS (sizeof(int64_t) + sizeof(uint64_t))

#define ENTRY_PART_MAX (UINT32_MAX - 64) /* lengths are kept in 32 bits; an MQTT packet has 28 */

static size_t fence_size(const struct hlc *fence) {
        return fence ? FENCE_NUMBERS + fence->node.length : 0;
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

int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence) {
        char header[PARSE_UINT64_DIGITS_MAX + 3];
        size_t header_length = format_blob_header(header, value.length);
        size_t blob_length = header_length + value.length + 2;
        size_t fence_length = fence_size(fence);
        struct entry *entry;
        uint8_t *at;

        if (key.length > ENTRY_PART_MAX || blob_length > ENTRY_PART_MAX || fence_length > ENTRY_PART_MAX)
                return -ENOMEM;

        entry = malloc(sizeof(*entry) + fence_length + key.length + blob_length);
        if (!entry)
                return -ENOMEM;

        entry->version_wall_ms = version.wall_ms;
        entry->version_counter = version.counter;
        entry->n_references = 1;
        entry->is_persistent = false;
        entry->expiry_position = HEAP_NONE;
        entry->key_length = (uint32_t)key.length;
        entry->blob_length = (uint32_t)blob_length;
        entry->fence_length = (uint32_t)fence_length;

        at = entry->bytes;
        if (fence) {
                at = mempcpy(at, &fence->wall_ms, sizeof(fence->wall_ms));
                at = mempcpy(at, &fence->counter, sizeof(fence->counter));
                at = mempcpy(at, fence->node.data, fence->node.length);
        }
        at = mempcpy(at, key.data, key.length);
        at = mempcpy(at, header, header_length);
        if (value.length > 0)
                at = mempcpy(at, value.data, value.length);
        memcpy(at, "\r\n", 2);

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
        return (struct slice){ entry->bytes + entry->fence_length, entry->key_length };
}

struct slice entry_blob(const struct entry *entry) {
        return (struct slice){ entry->bytes + entry->fence_length + entry->key_length, entry->blob_length };
}

struct slice entry_value(const struct entry *entry) {
        struct slice blob = entry_blob(entry);
        const uint8_t *line_end = memchr(blob.data, '\n', blob.length);
        size_t header_length = (size_t)(line_end - blob.data) + 1;

        return (struct slice){ line_end + 1, blob.length - header_length - 2 };
}

struct version entry_version(const struct entry *entry) {
        return (struct version){ entry->version_wall_ms, entry->version_counter };
}

bool entry_fence(const struct entry *entry, struct hlc *ret_fence) {
        if (entry->fence_length == 0)
                return false;

        memcpy(&ret_fence->wall_ms, entry->bytes, sizeof(ret_fence->wall_ms));
        memcpy(&ret_fence->counter, entry->bytes + sizeof(ret_fence->wall_ms), sizeof(ret_fence->counter));
        ret_fence->node =
                (struct slice){ entry->bytes + FENCE_NUMBERS, entry->fence_length - FENCE_NUMBERS };
        return true;
}

uint64_t entry_cost(size_t key_length, size_t value_length, const struct hlc *fence) {
        char header[PARSE_UINT64_DIGITS_MAX + 3];

        return sizeof(struct entry) + fence_size(fence) + key_length +
               format_blob_header(header, value_length) + value_length + 2 + ALLOCATION_OVERHEAD +
               TABLE_ITEM_OVERHEAD;
}

uint64_t entry_cost_of(const struct entry *entry) {
        return sizeof(*entry) + entry->fence_length + entry->key_length + entry->blob_length +
               ALLOCATION_OVERHEAD + TABLE_ITEM_OVERHEAD;
}
