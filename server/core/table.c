/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a lookup costs is the memory that it waits for. So a bucket is one line of cache: five items and their whole
 * hashes, of which one that is equal is nearly always the one that is looked for. A lookup reads a bucket and the
 * item, a miss the bucket alone.
 *
 * Where a bucket is full its items stand in the next one that is not. Each bucket counts those that had to pass it:
 * where none has, nothing that is missing here can be further on. So a removal leaves no marks behind.
 */

#include "core/table.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"

#define LINE_SIZE      64
#define BUCKET_ITEMS   5
#define ITEMS_A_BUCKET 4 /* at most, on average: beyond it the shard grows */
#define ITEMS_A_SHARD  64

struct bucket {
        uint32_t hashes[BUCKET_ITEMS];
        uint32_t n_passed; /* items that belong here or before, and stand behind */
        void *items[BUCKET_ITEMS];
};
_Static_assert(sizeof(struct bucket) <= LINE_SIZE, "a bucket is a line");

struct table_shard {
        void *memory; /* in which the buckets begin at a line's begin */
        uint32_t n_buckets;
        uint32_t n_items;
};

static uint32_t shard_of(const struct table *table, uint32_t hash) {
        return table->shard_bits == 0 ? 0 : hash >> (32 - table->shard_bits);
}

static uint32_t n_shards(const struct table *table) {
        return UINT32_C(1) << table->shard_bits;
}

static struct bucket *buckets_of(const struct table_shard *shard) {
        return (struct bucket *)(((uintptr_t)shard->memory + LINE_SIZE - 1) & ~(uintptr_t)(LINE_SIZE - 1));
}

/* Where an item of this hash belongs: the bits below the shard's, as a fraction of the buckets. */
static uint32_t home_of(const struct table *table, const struct table_shard *shard, uint32_t hash) {
        return (uint32_t)(((uint64_t)(hash << table->shard_bits) * shard->n_buckets) >> 32);
}

static uint32_t next_of(const struct table_shard *shard, uint32_t at) {
        return at + 1 == shard->n_buckets ? 0 : at + 1;
}

uint32_t table_shard_bits(uint64_t n_items_max, uint32_t least_bits, uint32_t most_bits) {
        uint32_t bits = least_bits;

        while (bits < most_bits && n_items_max >> bits > ITEMS_A_SHARD)
                bits++;
        return bits;
}

int table_init(struct table *table, uint32_t shard_bits, struct slice (*key)(const void *item)) {
        struct table_shard *shards;

        ASSERT(shard_bits <= 16);

        shards = calloc((size_t)1 << shard_bits, sizeof(*shards));
        if (!shards)
                return -ENOMEM;

        *table = (struct table){ .shard_bits = shard_bits, .shards = shards, .key = key };
        return 0;
}

void table_deinit(struct table *table) {
        if (!table->shards)
                return;

        for (uint32_t i = 0; i < n_shards(table); i++)
                free(table->shards[i].memory);
        free(table->shards);
        *table = (struct table){ 0 };
}

uint32_t table_hash(const struct hash_key *hash_key, struct slice key) {
        return (uint32_t)(hash_bytes(hash_key, key) >> 32);
}

static bool has_key(const struct table *table, const void *item, struct slice key) {
        struct slice own = table->key(item);

        return own.length == key.length && (key.length == 0 || memcmp(own.data, key.data, key.length) == 0);
}

void *table_find(const struct table *table, uint32_t hash, struct slice key) {
        const struct table_shard *shard = &table->shards[shard_of(table, hash)];
        const struct bucket *buckets = buckets_of(shard);
        uint32_t at = home_of(table, shard, hash);

        for (uint32_t n = 0; n < shard->n_buckets; n++, at = next_of(shard, at)) {
                const struct bucket *bucket = &buckets[at];

                for (size_t i = 0; i < BUCKET_ITEMS; i++)
                        if (bucket->hashes[i] == hash && bucket->items[i] &&
                            has_key(table, bucket->items[i], key))
                                return bucket->items[i];
                if (bucket->n_passed == 0)
                        break;
        }
        return NULL;
}

/* There must be room for it. */
static void insert(const struct table *table, struct table_shard *shard, uint32_t hash, void *item) {
        struct bucket *buckets = buckets_of(shard);

        for (uint32_t at = home_of(table, shard, hash);; at = next_of(shard, at)) {
                struct bucket *bucket = &buckets[at];

                for (size_t i = 0; i < BUCKET_ITEMS; i++)
                        if (!bucket->items[i]) {
                                bucket->hashes[i] = hash;
                                bucket->items[i] = item;
                                shard->n_items++;
                                return;
                        }
                bucket->n_passed++;
        }
}

static int grow(const struct table *table, struct table_shard *shard) {
        uint64_t n_buckets = (uint64_t)shard->n_buckets + shard->n_buckets / 4 + 1;
        struct table_shard grown = { .n_buckets = (uint32_t)n_buckets };
        struct bucket *buckets = buckets_of(shard);

        if (n_buckets > UINT32_MAX / ITEMS_A_BUCKET || n_buckets > SIZE_MAX / LINE_SIZE - 1)
                return -ENOMEM;
        grown.memory = calloc(1, n_buckets * sizeof(struct bucket) + LINE_SIZE - 1);
        if (!grown.memory)
                return -ENOMEM;

        for (uint32_t at = 0; at < shard->n_buckets; at++)
                for (size_t i = 0; i < BUCKET_ITEMS; i++)
                        if (buckets[at].items[i])
                                insert(table, &grown, buckets[at].hashes[i], buckets[at].items[i]);
        free(shard->memory);
        *shard = grown;
        return 0;
}

int table_add(struct table *table, uint32_t hash, void *item) {
        struct table_shard *shard = &table->shards[shard_of(table, hash)];
        int r;

        if (shard->n_items >= shard->n_buckets * ITEMS_A_BUCKET) {
                r = grow(table, shard);
                if (r < 0)
                        return r;
        }

        insert(table, shard, hash, item);
        table->n_items++;
        return 0;
}

/* Where the item stands. *ret_bucket is its bucket's number. */
static void **place_of(const struct table *table, const struct table_shard *shard, uint32_t hash,
                       const void *item, uint32_t *ret_bucket) {
        struct bucket *buckets = buckets_of(shard);

        ASSERT(shard->n_items > 0);

        for (uint32_t at = home_of(table, shard, hash);; at = next_of(shard, at)) {
                for (size_t i = 0; i < BUCKET_ITEMS; i++)
                        if (buckets[at].items[i] == item) {
                                *ret_bucket = at;
                                return &buckets[at].items[i];
                        }
                ASSERT(buckets[at].n_passed > 0);
        }
}

void table_replace(struct table *table, uint32_t hash, const void *item, void *replacement) {
        uint32_t at;

        *place_of(table, &table->shards[shard_of(table, hash)], hash, item, &at) = replacement;
}

void table_remove(struct table *table, uint32_t hash, const void *item) {
        struct table_shard *shard = &table->shards[shard_of(table, hash)];
        uint32_t end;

        *place_of(table, shard, hash, item, &end) = NULL;
        for (uint32_t at = home_of(table, shard, hash); at != end; at = next_of(shard, at))
                buckets_of(shard)[at].n_passed--;

        table->n_items--;
        if (--shard->n_items == 0 && shard->n_buckets > 1) {
                free(shard->memory);
                *shard = (struct table_shard){ 0 };
        }
}

void *table_each_of_shard(const struct table *table, struct table_cursor *cursor) {
        const struct table_shard *shard = &table->shards[cursor->shard];

        while (cursor->position / BUCKET_ITEMS < shard->n_buckets) {
                const struct bucket *bucket = &buckets_of(shard)[cursor->position / BUCKET_ITEMS];
                uint32_t i = cursor->position++ % BUCKET_ITEMS;

                if (bucket->items[i]) {
                        cursor->hash = bucket->hashes[i];
                        return bucket->items[i];
                }
        }
        return NULL;
}

void *table_each(const struct table *table, struct table_cursor *cursor) {
        for (;;) {
                void *item = table_each_of_shard(table, cursor);

                if (item || cursor->shard + 1 == n_shards(table))
                        return item;
                cursor->shard++;
                cursor->position = 0;
        }
}

bool table_seek(const struct table *table, uint32_t from, struct table_cursor *ret_cursor) {
        for (uint32_t i = shard_of(table, from); i < n_shards(table); i++)
                if (table->shards[i].n_items > 0) {
                        *ret_cursor = (struct table_cursor){ .shard = i };
                        return true;
                }
        return false;
}

uint32_t table_shard_end(const struct table *table, const struct table_cursor *cursor) {
        uint32_t next = cursor->shard + 1;

        return next == n_shards(table) ? 0 : next << (32 - table->shard_bits);
}
