/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every write leaves a record, so a record costs no allocation of its own: they come from slabs, which are
 * kept until the end. What is forgotten makes room for what comes next.
 */

#include "core/dedup.h"

#include <errno.h>
#include <stdlib.h>
#define XXH_STATIC_LINKING_ONLY /* for a state on the stack */
#include <xxhash.h>

#include "common/cleanup.h"

#define DEDUP_SHARD_BITS 12
#define SLAB_RECORDS     256

/* What one answer that is remembered drops at most, after the limit was lowered. */
#define DROPPED_MAX 16

struct dedup_record {
        struct digest digest;
        struct remembered_answer answer;
        uint32_t position;
        uint32_t slot;
        struct dedup_record *next_free;
};

struct dedup_slab {
        struct dedup_slab *next;
        struct dedup_record records[SLAB_RECORDS];
};

/* With its share of the table and of the heap's array. */
#define RECORD_COST (sizeof(struct dedup_record) + TABLE_ITEM_OVERHEAD + 2 * sizeof(struct heap_node))

static struct slice digest_slice(const struct digest *digest) {
        return (struct slice){ digest->bytes, sizeof(digest->bytes) };
}

/* The digest is a hash already. */
static uint32_t digest_hash(const struct digest *digest) {
        uint32_t hash;

        memcpy(&hash, digest->bytes, sizeof(hash));
        return hash;
}

static uint32_t *record_position(void *item) {
        return &((struct dedup_record *)item)->position;
}

static struct slice record_key(const void *item) {
        return digest_slice(&((const struct dedup_record *)item)->digest);
}

int dedup_init(struct dedup *dedup, uint64_t n_bytes_max) {
        *dedup = (struct dedup){ 0 };
        dedup_set_limit(dedup, n_bytes_max);
        heap_init(&dedup->deadlines, record_position);
        return table_init(&dedup->table, DEDUP_SHARD_BITS, record_key);
}

void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max) {
        dedup->n_records_max = n_bytes_max / RECORD_COST;
}

void dedup_deinit(struct dedup *dedup) {
        struct dedup_slab *slab;

        table_deinit(&dedup->table);
        heap_deinit(&dedup->deadlines);
        while ((slab = dedup->slabs)) {
                dedup->slabs = slab->next;
                free(slab);
        }
}

struct digest dedup_digest(uint64_t seed, const struct slice *parts, size_t n_parts) {
        XXH3_state_t state;
        XXH128_canonical_t canonical;
        struct digest digest;

        XXH3_INITSTATE(
                &state); /* else a seed that happens to lie here passes for one whose secret was made */
        XXH3_128bits_reset_withSeed(&state, seed);
        for (size_t i = 0; i < n_parts; i++) {
                XXH3_128bits_update(&state, &parts[i].length, sizeof(parts[i].length));
                XXH3_128bits_update(&state, parts[i].data, parts[i].length);
        }

        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
        _Static_assert(sizeof(digest) == sizeof(canonical), "the digest is the canonical hash");
        memcpy(&digest, &canonical, sizeof(digest));
        return digest;
}

static struct dedup_record *find(const struct dedup *dedup, const struct digest *digest) {
        return table_find(&dedup->table, digest_hash(digest), digest_slice(digest));
}

static void forget(struct dedup *dedup, struct dedup_record *record) {
        table_remove(&dedup->table, digest_hash(&record->digest), record);
        heap_remove(&dedup->deadlines, record);
        record->next_free = dedup->free_records;
        dedup->free_records = record;
}

static int add_slab(struct dedup *dedup) {
        struct dedup_slab *slab = malloc(sizeof(*slab));

        if (!slab)
                return -ENOMEM;

        slab->next = dedup->slabs;
        dedup->slabs = slab;
        for (uint32_t i = SLAB_RECORDS; i-- > 0;) {
                slab->records[i].slot = dedup->n_slots + i;
                slab->records[i].next_free = dedup->free_records;
                dedup->free_records = &slab->records[i];
        }
        dedup->n_slots += SLAB_RECORDS;
        return 0;
}

bool dedup_find(const struct dedup *dedup, const struct digest *digest, int64_t now_ns,
                struct remembered_answer *ret_answer) {
        struct dedup_record *record = find(dedup, digest);

        if (!record || heap_deadline(&dedup->deadlines, record) <= now_ns)
                return false;

        *ret_answer = record->answer;
        return true;
}

void dedup_forget(struct dedup *dedup, const struct digest *digest) {
        struct dedup_record *record = find(dedup, digest);

        if (record)
                forget(dedup, record);
}

/* Makes sure that one more can be remembered. */
static int make_room(struct dedup *dedup) {
        int r;

        if (dedup->n_records_max == 0)
                return -ENOMEM;
        for (int i = 0; i < DROPPED_MAX && dedup->table.n_items >= dedup->n_records_max; i++) {
                forget(dedup, heap_first(&dedup->deadlines));
                dedup->n_dropped_early++;
        }
        if (!dedup->free_records)
                dedup->free_records = take_ptr(&dedup->skipped_records);
        if (!dedup->free_records) {
                r = add_slab(dedup);
                if (r < 0)
                        return r;
        }
        return heap_reserve(&dedup->deadlines, 1);
}

/* Fills the first free record. There must be room for it. */
static int fill(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
                int64_t deadline_ns) {
        struct dedup_record *record = dedup->free_records;
        int r;

        record->digest = *digest;
        record->answer = answer;
        record->position = HEAP_NONE;
        r = table_add(&dedup->table, digest_hash(digest), record);
        if (r < 0)
                return r;

        dedup->free_records = record->next_free;
        heap_insert(&dedup->deadlines, deadline_ns, record);
        return 0;
}

static int remember(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
                    int64_t deadline_ns, uint32_t *ret_slot) {
        uint32_t slot;
        int r;

        r = make_room(dedup);
        if (r < 0)
                return r;

        slot = dedup->free_records->slot;
        r = fill(dedup, digest, answer, deadline_ns);
        if (r < 0)
                return r;

        *ret_slot = slot;
        return 0;
}

bool dedup_remember(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
                    int64_t deadline_ns, uint32_t *ret_slot) {
        dedup_forget(dedup, digest);
        if (remember(dedup, digest, answer, deadline_ns, ret_slot) == 0)
                return true;

        dedup->n_dropped_early++;
        return false;
}

/* Makes the record of this slot the first free one. Those before it are free too, but their time is later. */
static int skip_to(struct dedup *dedup, uint32_t slot) {
        int r;

        for (;;) {
                struct dedup_record *record = dedup->free_records;

                if (!record) {
                        r = add_slab(dedup);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (record->slot >= slot)
                        return record->slot == slot ? 0 : -EBADMSG;

                dedup->free_records = record->next_free;
                record->next_free = dedup->skipped_records;
                dedup->skipped_records = record;
        }
}

int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns) {
        int r;

        if (slot >= dedup->n_records_max || find(dedup, digest)) {
                dedup->n_dropped_early++;
                return 0;
        }

        r = skip_to(dedup, slot);
        if (r == 0)
                r = heap_reserve(&dedup->deadlines, 1);
        if (r == 0)
                r = fill(dedup, digest, answer, deadline_ns);
        return r;
}

void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max) {
        for (uint32_t i = 0; i < n_max && dedup_next_deadline(dedup) <= now_ns; i++)
                forget(dedup, heap_first(&dedup->deadlines));
}

int64_t dedup_next_deadline(const struct dedup *dedup) {
        return heap_first_deadline(&dedup->deadlines);
}

uint64_t dedup_n_answers(const struct dedup *dedup) {
        return dedup->table.n_items;
}
