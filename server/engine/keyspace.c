/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/keyspace.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

/* 1. Entries */

/*
 * Average overhead of an entry: the header and the rounding of malloc(), and the entry's share of
 * the buckets.
 */
#define OVERHEAD (16 + 8)

#define PART_LENGTH_MAX ((UINT32_C(1) << 28) - 1) /* as long as an MQTT packet can be */

/* A fencing token inside an entry; its node id follows. */
struct fence_header {
        int64_t wall_ms;
        uint64_t counter;
        uint64_t node_length;
};

/* Points to the fencing token, which is not aligned. */
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

int entry_new(struct entry **ret_entry, struct slice key, struct slice value, struct version version,
              const struct hlc *fence) {
        struct entry *entry;
        uint8_t *at;

        if (key.length > PART_LENGTH_MAX || value.length > PART_LENGTH_MAX ||
            (fence && fence->node.length > PART_LENGTH_MAX))
                return -ENOMEM;

        entry = malloc((size_t)(entry_cost(key.length, value.length, fence) - OVERHEAD));
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
                .node = { fence_of(entry) + sizeof(header), (size_t)header.node_length },
        };
        return true;
}

/* offsetof() excludes the padding at the end of the struct, sizeof would include it. */
uint64_t entry_cost(size_t key_length, size_t value_length, const struct hlc *fence) {
        return OVERHEAD + offsetof(struct entry, bytes) + key_length + value_length +
               (fence ? sizeof(struct fence_header) + fence->node.length : 0);
}

uint64_t entry_cost_of(const struct entry *entry) {
        return OVERHEAD + offsetof(struct entry, bytes) + entry->hh.keylen + entry->value_length +
               (entry->has_fence ? sizeof(struct fence_header) + fence_header_of(entry).node_length : 0);
}

/* 2. The table of entries */

static uint32_t *entry_position(void *item) {
        return &((struct entry *)item)->expiry_position;
}

/* value: the hash_value() of the key's hash. */
static struct entry **shard_of(const struct keyspace *keyspace, unsigned int value) {
        return &keyspace->shards[hash_shard(value, KEYSPACE_SHARD_BITS)];
}

int keyspace_init(struct keyspace *keyspace, const struct hash_key *hash_key) {
        *keyspace = (struct keyspace){ .hash_key = *hash_key };
        heap_init(&keyspace->deadlines, entry_position);
        keyspace->shards = calloc(KEYSPACE_N_SHARDS, sizeof(keyspace->shards[0]));
        return keyspace->shards ? 0 : -ENOMEM;
}

void keyspace_deinit(struct keyspace *keyspace) {
        struct keyspace_cursor cursor = { 0 };
        struct entry *entry;

        if (!keyspace->shards)
                return;

        while ((entry = keyspace_each(keyspace, &cursor))) {
                keyspace_remove(keyspace, entry);
                entry_unref(entry);
        }
        free(keyspace->shards);
        heap_deinit(&keyspace->deadlines);
        *keyspace = (struct keyspace){ 0 };
}

uint64_t keyspace_hash(const struct keyspace *keyspace, struct slice key) {
        return hash_bytes(&keyspace->hash_key, key);
}

struct entry *keyspace_find(const struct keyspace *keyspace, uint64_t hash, struct slice key) {
        unsigned int value = hash_value(hash);
        struct entry *shard = *shard_of(keyspace, value), *entry;

        HASH_FIND_BYHASHVALUE(hh, shard, key.data, key.length, value, entry);
        return entry;
}

static void remove_from(struct keyspace *keyspace, struct entry **shard, struct entry *entry) {
        HASH_DEL(*shard, entry);
        keyspace->n_keys--;
        keyspace->n_bytes -= entry_cost_of(entry);
        if (entry->expiry_position != HEAP_NONE)
                heap_remove(&keyspace->deadlines, entry);
}

/* The table has both entries for a moment, because adding can fail and removing cannot. */
int keyspace_put(struct keyspace *keyspace, uint64_t hash, struct entry *entry, int64_t deadline_ns,
                 struct entry *replaced) {
        unsigned int value = hash_value(hash);
        struct entry **shard = shard_of(keyspace, value);
        int r;

        if (deadline_ns != DEADLINE_NEVER) {
                r = heap_reserve(&keyspace->deadlines, 1);
                if (r < 0)
                        return r;
        }
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard, entry->hh.key, entry->hh.keylen, value, entry);
        if (!entry->hh.tbl)
                return -ENOMEM;

        keyspace->n_keys++;
        keyspace->n_bytes += entry_cost_of(entry);
        if (replaced)
                remove_from(keyspace, shard, replaced);
        if (deadline_ns != DEADLINE_NEVER)
                heap_insert(&keyspace->deadlines, deadline_ns, entry);
        return 0;
}

void keyspace_remove(struct keyspace *keyspace, struct entry *entry) {
        remove_from(keyspace, shard_of(keyspace, entry->hh.hashv), entry);
}

int64_t keyspace_deadline(const struct keyspace *keyspace, struct entry *entry) {
        return entry->expiry_position == HEAP_NONE ? DEADLINE_NEVER
                                                   : heap_deadline(&keyspace->deadlines, entry);
}

struct entry *keyspace_each(const struct keyspace *keyspace, struct keyspace_cursor *cursor) {
        struct entry *entry = cursor->next;

        while (!entry && cursor->n_shards_begun < KEYSPACE_N_SHARDS)
                entry = keyspace->shards[cursor->n_shards_begun++];
        cursor->next = entry ? entry->hh.next : NULL;
        return entry;
}

struct entry *keyspace_expired(const struct keyspace *keyspace, int64_t now_ns) {
        return heap_first_deadline(&keyspace->deadlines) <= now_ns ? heap_first(&keyspace->deadlines) : NULL;
}
