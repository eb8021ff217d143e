/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines are in a timing wheel: one list per second, in the order of insertion. A timing wheel adds and removes a record in
 * constant time. This matters, because every write adds a record that is later removed.
 */

#include "engine/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#include "base/array.h"
#include "base/time_units.h"

_Static_assert((DEDUP_SPAN_S & (DEDUP_SPAN_S - 1)) == 0,
               "DEDUP_SPAN_S must divide 2^32: dedup_forget() has only the low 32 bits of a deadline");

/* Maximum number of records that one dedup_add() drops, after the limit was lowered. */
#define DROPPED_PER_ADD_MAX 16

/*
 * Blocks are mapped with mmap(), so that freeing them returns their memory to the system. malloc() could place a block in the
 * heap. Entries allocated above the block would then keep it resident after it is freed.
 */
#define BLOCK_BYTES (DEDUP_BLOCK_RECORDS * sizeof(struct dedup_record))

/* Memory of one record, with its share of the buckets. */
#define RECORD_COST (sizeof(struct dedup_record) + 8)

void dedup_init(struct dedup *dedup, uint64_t n_bytes_max) {
        *dedup = (struct dedup){ 0 };
        dedup_set_limit(dedup, n_bytes_max);
}

void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max) {
        uint64_t n_records_max = n_bytes_max / RECORD_COST;

        dedup->n_records_max = n_records_max < UINT32_MAX ? n_records_max : UINT32_MAX;
}

/* Return the value for the hash tables: a part of the digest, which is a keyed hash already. */
static unsigned int digest_value(const struct digest *digest) {
        unsigned int value;

        memcpy(&value, digest->bytes, sizeof(value));
        return value;
}

struct dedup_record *dedup_find(const struct dedup *dedup, const struct digest *digest) {
        unsigned int value = digest_value(digest);
        struct dedup_record *shard = dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)], *record;

        HASH_FIND_BYHASHVALUE(hh, shard, digest, sizeof(*digest), value, record);
        return record;
}

/* 1. Slots */

/* Returns NULL if out of memory. */
static struct dedup_record *map_block(void) {
        void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return block == MAP_FAILED ? NULL : block;
}

/* Return a record in the next slot that was never in use, or NULL if out of memory. */
static struct dedup_record *take_next_slot(struct dedup *dedup) {
        size_t n_blocks = dedup->n_slots / DEDUP_BLOCK_RECORDS;
        struct dedup_record *record;

        if (dedup->n_slots % DEDUP_BLOCK_RECORDS == 0) {
                if (array_reserve((void **)&dedup->blocks, &dedup->blocks_capacity, n_blocks + 1,
                                  sizeof(*dedup->blocks)) < 0)
                        return NULL;
                dedup->blocks[n_blocks] = map_block();
                if (!dedup->blocks[n_blocks])
                        return NULL;
        }

        record = &dedup->blocks[n_blocks][dedup->n_slots % DEDUP_BLOCK_RECORDS];
        record->slot = dedup->n_slots++;
        return record;
}

static void release_record(struct dedup *dedup, struct dedup_record *record) {
        LL_PREPEND(dedup->free_records, record);
}

static struct dedup_record *take_record(struct dedup *dedup) {
        struct dedup_record *record = dedup->free_records;

        if (!record)
                return take_next_slot(dedup);
        LL_DELETE(dedup->free_records, record);
        return record;
}

/* Return the record of this slot, which was never in use. Unused slots before it become free records. */
static struct dedup_record *take_slot(struct dedup *dedup, uint32_t slot) {
        struct dedup_record *record;

        while ((record = take_next_slot(dedup)) && record->slot < slot)
                release_record(dedup, record);
        return record;
}

static void free_blocks(struct dedup *dedup) {
        for (size_t i = 0; i * DEDUP_BLOCK_RECORDS < dedup->n_slots; i++)
                munmap(dedup->blocks[i], BLOCK_BYTES);
        dedup->n_slots = 0;
        dedup->free_records = NULL;
}

/* 2. Seconds */

static struct dedup_record **second_of(struct dedup *dedup, int64_t deadline_s) {
        return &dedup->seconds[deadline_s % DEDUP_SPAN_S];
}

/* Return the deadline in seconds. The record has its low 32 bits, and it is less than DEDUP_SPAN_S after first_s. */
static int64_t deadline_of(const struct dedup *dedup, const struct dedup_record *record) {
        return dedup->first_s + (record->deadline_s - (uint32_t)dedup->first_s);
}

bool dedup_is_expired(const struct dedup *dedup, const struct dedup_record *record, int64_t now_ns) {
        return deadline_of(dedup, record) * NS_PER_S <= now_ns;
}

/* Return the record with the earliest deadline. There must be one. */
static struct dedup_record *first_record(struct dedup *dedup) {
        return *second_of(dedup, dedup->first_s);
}

static void advance_first(struct dedup *dedup) {
        while (dedup->n_records > 0 && !first_record(dedup))
                dedup->first_s++;
}

/* Frees all blocks if this was the last record. */
void dedup_forget(struct dedup *dedup, struct dedup_record *record) {
        struct dedup_record **shard = &dedup->shards[hash_shard(record->hh.hashv, DEDUP_SHARD_BITS)];
        struct dedup_record **second = second_of(dedup, record->deadline_s);
        struct dedup_group *group = &dedup->groups[record->group];

        HASH_DEL(*shard, record);
        DL_DELETE2(*second, record, previous, next);
        DL_DELETE2(group->oldest, record, older, newer);
        group->n_records--;
        release_record(dedup, record);
        if (--dedup->n_records == 0)
                free_blocks(dedup);
        advance_first(dedup);
}

/*
 * Return the deadline in seconds, rounded up. Lower first_s or raise last_s so that the span between them includes it. If the
 * span would exceed DEDUP_SPAN_S because the deadline is late, drop the earliest records: they have expired, because
 * DEDUP_SPAN_S is longer than a reply is remembered. If the span would exceed DEDUP_SPAN_S because the deadline is early,
 * return the earliest second that the span can include.
 */
static int64_t fit_into_span(struct dedup *dedup, int64_t deadline_ns) {
        int64_t deadline_s = deadline_ns <= 0 ? 0 : (deadline_ns - 1) / NS_PER_S + 1;

        if (deadline_s > INT64_MAX / NS_PER_S)
                deadline_s = INT64_MAX / NS_PER_S;
        while (dedup->n_records > 0 && deadline_s - dedup->first_s >= DEDUP_SPAN_S)
                dedup_forget(dedup, first_record(dedup));

        if (dedup->n_records == 0) {
                dedup->first_s = deadline_s;
                dedup->last_s = deadline_s;
        }
        if (dedup->last_s - deadline_s >= DEDUP_SPAN_S)
                deadline_s = dedup->last_s - DEDUP_SPAN_S + 1;
        if (deadline_s < dedup->first_s)
                dedup->first_s = deadline_s;
        if (deadline_s > dedup->last_s)
                dedup->last_s = deadline_s;
        return deadline_s;
}

/* 3. Records */

void dedup_deinit(struct dedup *dedup) {
        while (dedup->n_records > 0)
                dedup_forget(dedup, first_record(dedup));
        free_blocks(dedup);
        free(dedup->blocks);
}

/* record: an unused one, or NULL if out of memory. deadline_s: from fit_into_span(). */
static int add(struct dedup *dedup, struct dedup_record *record, const struct reply_row *row, uint16_t group,
               int64_t deadline_s) {
        unsigned int value = digest_value(&row->digest);
        struct dedup_record **shard = &dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)];
        struct dedup_record **second = second_of(dedup, deadline_s);

        if (record) {
                *record = (struct dedup_record){ .digest = row->digest,
                                                 .reply = row->reply,
                                                 .slot = record->slot,
                                                 .group = group,
                                                 .deadline_s = (uint32_t)deadline_s };
                HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard, &record->digest, sizeof(record->digest), value,
                                            record);
                if (!record->hh.tbl)
                        release_record(dedup, record);
        }
        if (!record || !record->hh.tbl) {
                advance_first(dedup); /* fit_into_span() may have set first_s to the second of this record */
                return -ENOMEM;
        }

        DL_APPEND2(*second, record, previous, next);
        DL_APPEND2(dedup->groups[group].oldest, record, older, newer);
        dedup->groups[group].n_records++;
        dedup->n_records++;
        return 0;
}

static void drop_early(struct dedup *dedup, struct dedup_record *record) {
        dedup_forget(dedup, record);
        dedup->n_dropped_early++;
}

static const struct dedup_group *largest_group(const struct dedup *dedup) {
        const struct dedup_group *largest = &dedup->groups[0];

        for (size_t i = 1; i < ARRAY_LENGTH(dedup->groups); i++)
                if (dedup->groups[i].n_records > largest->n_records)
                        largest = &dedup->groups[i];
        return largest;
}

/*
 * Make room for one more record: drop the oldest record of the largest group. Comparing all groups takes about a microsecond,
 * so no structure orders them.
 *
 * Exception: if no group is larger than the group of the record with the earliest deadline, drop that record. This matters if
 * several groups are equally large, and for restored records: they are in the order of their slots, so the first is not the
 * oldest.
 */
static int make_room(struct dedup *dedup) {
        for (int i = 0;
             i < DROPPED_PER_ADD_MAX && dedup->n_records > 0 && dedup->n_records >= dedup->n_records_max;
             i++) {
                const struct dedup_group *largest = largest_group(dedup);
                struct dedup_record *first = first_record(dedup);

                drop_early(dedup, dedup->groups[first->group].n_records == largest->n_records
                                          ? first
                                          : largest->oldest);
        }
        return dedup->n_records_max == 0 ? -ENOMEM : 0;
}

bool dedup_add(struct dedup *dedup, const struct digest *client, struct reply_row *row) {
        uint16_t group = digest_value(client) % DEDUP_N_GROUPS;
        struct dedup_record *record;
        int64_t deadline_s;

        if (make_room(dedup) == 0) {
                deadline_s = fit_into_span(dedup, row->deadline_ns);
                record = take_record(dedup);
                if (add(dedup, record, row, group, deadline_s) == 0) {
                        row->slot = record->slot;
                        return true;
                }
        }

        dedup->n_dropped_early++;
        return false;
}

int dedup_restore(struct dedup *dedup, const struct reply_row *row) {
        struct dedup_record *record;
        int64_t deadline_s;

        if (dedup->n_records >= dedup->n_records_max && row->deadline_ns > dedup_next_deadline(dedup))
                drop_early(dedup, first_record(dedup));
        if (dedup->n_records >= dedup->n_records_max || dedup_find(dedup, &row->digest)) {
                dedup->n_dropped_early++;
                return 0;
        }
        if (row->slot < dedup->n_slots)
                return -EBADMSG;

        deadline_s = fit_into_span(dedup, row->deadline_ns);
        record = row->slot < dedup->n_records_max ? take_slot(dedup, row->slot) : take_record(dedup);
        return add(dedup, record, row, DEDUP_N_GROUPS, deadline_s);
}

void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max) {
        for (uint32_t i = 0; i < n_max && dedup->n_records > 0 && dedup_next_deadline(dedup) <= now_ns; i++)
                dedup_forget(dedup, first_record(dedup));
}

int64_t dedup_next_deadline(const struct dedup *dedup) {
        return dedup->n_records == 0 ? INT64_MAX : dedup->first_s * NS_PER_S;
}
