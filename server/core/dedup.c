/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every write leaves a record and most leave another one to forget, so neither may cost much: records come from
 * slabs, and are to be forgotten second by second, those of one second in the order in which they came.
 */

#include "core/dedup.h"

#include <errno.h>
#include <stdlib.h>

#include "common/assert.h"

#define SHARD_BITS_LEAST 8
#define SHARD_BITS_MOST  12
#define NS_PER_S         INT64_C(1000000000)

/* What one answer that is remembered drops at most, after the limit was lowered. */
#define DROPPED_MAX 16

#define NO_SLOT UINT32_MAX

struct dedup_record {
        struct digest digest;
        int64_t version_wall_ms;
        uint32_t version_counter;
        uint32_t deadline_s;           /* its lower bits, which tell it within the span */
        uint32_t slot, next, previous; /* of those of this second */
        uint16_t outcome;
        bool has_version;
};

/* With its share of the table. */
#define RECORD_COST (sizeof(struct dedup_record) + TABLE_ITEM_OVERHEAD)

static struct slice digest_slice(const struct digest *digest) {
        return (struct slice){ digest->bytes, sizeof(digest->bytes) };
}

/* The digest is a hash already. */
static uint32_t digest_hash(const struct digest *digest) {
        uint32_t hash;

        memcpy(&hash, digest->bytes, sizeof(hash));
        return hash;
}

static struct slice record_key(const void *record) {
        return digest_slice(&((const struct dedup_record *)record)->digest);
}

int dedup_init(struct dedup *dedup, uint64_t n_bytes_max) {
        *dedup = (struct dedup){ 0 };
        dedup_set_limit(dedup, n_bytes_max);
        slots_init(&dedup->records, sizeof(struct dedup_record));
        for (size_t i = 0; i < DEDUP_SPAN_S; i++)
                dedup->seconds[i] = (struct dedup_second){ NO_SLOT, NO_SLOT };
        return table_init(&dedup->table,
                          table_shard_bits(dedup->n_records_max, SHARD_BITS_LEAST, SHARD_BITS_MOST),
                          record_key);
}

void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max) {
        dedup->n_records_max = n_bytes_max / RECORD_COST;
}

void dedup_deinit(struct dedup *dedup) {
        table_deinit(&dedup->table);
        slots_deinit(&dedup->records);
}

static struct dedup_record *find(const struct dedup *dedup, const struct digest *digest) {
        return table_find(&dedup->table, digest_hash(digest), digest_slice(digest));
}

/* 1. Seconds */

static struct dedup_second *second_of(struct dedup *dedup, int64_t deadline_s) {
        return &dedup->seconds[deadline_s % DEDUP_SPAN_S];
}

static int64_t deadline_of(const struct dedup *dedup, const struct dedup_record *record) {
        return dedup->first_s + (record->deadline_s - (uint32_t)dedup->first_s);
}

static struct dedup_record *record_at(const struct dedup *dedup, uint32_t slot) {
        return slot == NO_SLOT ? NULL : slots_at(&dedup->records, slot);
}

/* The one that is forgotten first; there must be one. */
static struct dedup_record *first(const struct dedup *dedup) {
        return record_at(dedup, dedup->seconds[dedup->first_s % DEDUP_SPAN_S].first);
}

static void append(struct dedup *dedup, struct dedup_record *record) {
        struct dedup_second *second = second_of(dedup, record->deadline_s);
        struct dedup_record *last = record_at(dedup, second->last);

        record->next = NO_SLOT;
        record->previous = second->last;
        second->last = record->slot;
        if (last)
                last->next = record->slot;
        else
                second->first = record->slot;
}

static void unlink_record(struct dedup *dedup, const struct dedup_record *record) {
        struct dedup_second *second = second_of(dedup, record->deadline_s);
        struct dedup_record *next = record_at(dedup, record->next);
        struct dedup_record *previous = record_at(dedup, record->previous);

        *(next ? &next->previous : &second->last) = record->previous;
        *(previous ? &previous->next : &second->first) = record->next;
}

static void find_first(struct dedup *dedup) {
        while (dedup->table.n_items > 0 && second_of(dedup, dedup->first_s)->first == NO_SLOT)
                dedup->first_s++;
}

static void forget(struct dedup *dedup, struct dedup_record *record) {
        table_remove(&dedup->table, digest_hash(&record->digest), record);
        unlink_record(dedup, record);
        slots_release(&dedup->records, record->slot);

        find_first(dedup);
}

/*
 * The second in which it is forgotten: the first whole one at or after the deadline. All that is remembered lies
 * within a span. What is so much older than the newest that it does not has long been due, and goes; what comes with a
 * deadline so much earlier is kept a little longer.
 */
static int64_t admit(struct dedup *dedup, int64_t deadline_ns) {
        int64_t deadline_s = deadline_ns <= 0 ? 0 : (deadline_ns - 1) / NS_PER_S + 1;

        if (deadline_s > INT64_MAX / NS_PER_S)
                deadline_s = INT64_MAX / NS_PER_S;
        while (dedup->table.n_items > 0 && deadline_s - dedup->first_s >= DEDUP_SPAN_S)
                forget(dedup, first(dedup));

        if (dedup->table.n_items == 0) {
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

/* 2. Answers */

bool dedup_find(const struct dedup *dedup, const struct digest *digest, int64_t now_ns,
                struct remembered_answer *ret_answer) {
        const struct dedup_record *record = find(dedup, digest);

        if (!record || deadline_of(dedup, record) * NS_PER_S <= now_ns)
                return false;

        *ret_answer = (struct remembered_answer){
                .version_wall_ms = record->version_wall_ms,
                .version_counter = record->version_counter,
                .outcome = record->outcome,
                .has_version = record->has_version,
        };
        return true;
}

void dedup_forget(struct dedup *dedup, const struct digest *digest) {
        struct dedup_record *record = find(dedup, digest);

        if (record)
                forget(dedup, record);
}

/* Fills a record whose slot has been taken. Its slot is free again where that fails. */
static int fill(struct dedup *dedup, struct dedup_record *record, const struct digest *digest,
                struct remembered_answer answer, int64_t deadline_ns) {
        uint32_t slot = record->slot;
        int r;

        *record = (struct dedup_record){
                .digest = *digest,
                .version_wall_ms = answer.version_wall_ms,
                .version_counter = answer.version_counter,
                .deadline_s = (uint32_t)admit(dedup, deadline_ns),
                .slot = slot,
                .outcome = answer.outcome,
                .has_version = answer.has_version,
        };
        r = table_add(&dedup->table, digest_hash(digest), record);
        if (r < 0) {
                slots_release(&dedup->records, slot);
                find_first(dedup); /* which was not admitted after all */
                return r;
        }

        append(dedup, record);
        return 0;
}

/* Makes sure that one more may be remembered. */
static int make_room(struct dedup *dedup) {
        if (dedup->n_records_max == 0)
                return -ENOMEM;
        for (int i = 0; i < DROPPED_MAX && dedup->table.n_items >= dedup->n_records_max; i++) {
                forget(dedup, first(dedup));
                dedup->n_dropped_early++;
        }
        return slots_reserve(&dedup->records);
}

bool dedup_remember(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
                    int64_t deadline_ns, uint32_t *ret_slot) {
        struct dedup_record *record;
        uint32_t slot;

        dedup_forget(dedup, digest);
        if (make_room(dedup) == 0) {
                record = slots_take(&dedup->records, &slot);
                record->slot = slot;
                if (fill(dedup, record, digest, answer, deadline_ns) == 0) {
                        *ret_slot = slot;
                        return true;
                }
        }

        dedup->n_dropped_early++;
        return false;
}

int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns) {
        struct dedup_record *record;
        void *item;
        int r;

        /* within the slabs that the limit needs */
        if (slot / SLOTS_A_SLAB >= (dedup->n_records_max + SLOTS_A_SLAB - 1) / SLOTS_A_SLAB ||
            dedup->table.n_items >= dedup->n_records_max || find(dedup, digest)) {
                dedup->n_dropped_early++;
                return 0;
        }

        r = slots_take_at(&dedup->records, slot, &item);
        if (r < 0)
                return r;

        record = item;
        record->slot = slot;
        return fill(dedup, record, digest, answer, deadline_ns);
}

void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max) {
        for (uint32_t i = 0; i < n_max && dedup->table.n_items > 0 && dedup_next_deadline(dedup) <= now_ns;
             i++)
                forget(dedup, first(dedup));
}

int64_t dedup_next_deadline(const struct dedup *dedup) {
        return dedup->table.n_items == 0 ? INT64_MAX : dedup->first_s * NS_PER_S;
}

uint64_t dedup_n_answers(const struct dedup *dedup) {
        return dedup->table.n_items;
}
