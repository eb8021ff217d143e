/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every write adds a record and most forget another one. So deadlines are kept in a wheel: one list a second, each in the
 * order in which its records came, and adding and forgetting take the same short time however many there are.
 */

#include "core/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/array.h"
#include "common/assert.h"

#define NS_PER_S INT64_C(1000000000)

/* What one record that is added drops at most, after the limit was lowered. */
#define DROPPED_MAX 16

/* With malloc()'s header and rounding, and its shares of the buckets and the slots. */
#define RECORD_COST (sizeof(struct dedup_record) + 16 + 8 + 4)

void dedup_init(struct dedup *dedup, uint64_t n_bytes_max) {
        *dedup = (struct dedup){ 0 };
        dedup_set_limit(dedup, n_bytes_max);
}

void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max) {
        uint64_t n_records_max = n_bytes_max / RECORD_COST;

        dedup->n_records_max = n_records_max < UINT32_MAX ? n_records_max : UINT32_MAX;
}

/* The digest is a keyed hash already. */
static unsigned int digest_value(const struct digest *digest) {
        unsigned int value;

        memcpy(&value, digest->bytes, sizeof(value));
        return value;
}

static struct dedup_record **shard_of(struct dedup *dedup, unsigned int value) {
        return &dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)];
}

struct dedup_record *dedup_find(const struct dedup *dedup, const struct digest *digest) {
        unsigned int value = digest_value(digest);
        struct dedup_record *record;

        HASH_FIND_BYHASHVALUE(hh, dedup->shards[hash_shard(value, DEDUP_SHARD_BITS)], digest,
                              sizeof(*digest), value, record);
        return record;
}

/* 1. Slots */

/* Make room for one more free slot than there are slots, so that releasing one cannot fail. */
static int reserve_slot(struct dedup *dedup, uint32_t n_slots) {
        return array_reserve((void **)&dedup->free_slots, &dedup->free_slots_capacity, n_slots,
                             sizeof(*dedup->free_slots));
}

static int take_slot(struct dedup *dedup, uint32_t *ret_slot) {
        int r;

        if (dedup->n_free_slots > 0) {
                *ret_slot = dedup->free_slots[--dedup->n_free_slots];
                return 0;
        }

        r = reserve_slot(dedup, dedup->n_slots + 1);
        if (r < 0)
                return r;
        *ret_slot = dedup->n_slots++;
        return 0;
}

static void release_slot(struct dedup *dedup, uint32_t slot) {
        dedup->free_slots[dedup->n_free_slots++] = slot;
}

/* Take this slot; those before it that were never taken are free. */
static int take_slot_at(struct dedup *dedup, uint32_t slot) {
        int r;

        if (slot < dedup->n_slots)
                return -EBADMSG;
        r = reserve_slot(dedup, slot + 1);
        if (r < 0)
                return r;

        for (; dedup->n_slots < slot; dedup->n_slots++)
                release_slot(dedup, dedup->n_slots);
        dedup->n_slots++;
        return 0;
}

/* 2. Seconds */

static struct dedup_record **second_of(struct dedup *dedup, int64_t deadline_s) {
        return &dedup->seconds[deadline_s % DEDUP_SPAN_S];
}

static int64_t deadline_of(const struct dedup *dedup, const struct dedup_record *record) {
        return dedup->first_s + (record->deadline_s - (uint32_t)dedup->first_s);
}

bool dedup_is_over(const struct dedup *dedup, const struct dedup_record *record, int64_t now_ns) {
        return deadline_of(dedup, record) * NS_PER_S <= now_ns;
}

/* The record that is forgotten first; there must be one. */
static struct dedup_record *first(struct dedup *dedup) {
        return *second_of(dedup, dedup->first_s);
}

void dedup_forget(struct dedup *dedup, struct dedup_record *record) {
        HASH_DEL(*shard_of(dedup, record->hh.hashv), record);
        DL_DELETE2(*second_of(dedup, record->deadline_s), record, previous, next);
        release_slot(dedup, record->slot);
        free(record);

        dedup->n_records--;
        while (dedup->n_records > 0 && !first(dedup))
                dedup->first_s++;
}

/*
 * The second in which a record with this deadline is forgotten: the first whole one at or after it. All records lie
 * within a span: those that are so much older than the newest that they do not have long been over, and go; one that
 * comes with a deadline so much earlier is kept a little longer.
 */
static int64_t admit(struct dedup *dedup, int64_t deadline_ns) {
        int64_t deadline_s = deadline_ns <= 0 ? 0 : (deadline_ns - 1) / NS_PER_S + 1;

        if (deadline_s > INT64_MAX / NS_PER_S)
                deadline_s = INT64_MAX / NS_PER_S;
        while (dedup->n_records > 0 && deadline_s - dedup->first_s >= DEDUP_SPAN_S)
                dedup_forget(dedup, first(dedup));

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
                dedup_forget(dedup, first(dedup));
        free(dedup->free_slots);
}

/* Takes over the slot where it succeeds. */
static int add(struct dedup *dedup, uint32_t slot, const struct digest *digest,
               struct remembered_answer answer, int64_t deadline_ns) {
        struct dedup_record *record = malloc(sizeof(*record));
        unsigned int value = digest_value(digest);

        if (!record)
                return -ENOMEM;

        *record = (struct dedup_record){ .digest = *digest, .answer = answer, .slot = slot };
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, *shard_of(dedup, value), &record->digest, sizeof(record->digest),
                                    value, record);
        if (!record->hh.tbl) {
                free(record);
                return -ENOMEM;
        }

        record->deadline_s = (uint32_t)admit(dedup, deadline_ns);
        DL_APPEND2(*second_of(dedup, record->deadline_s), record, previous, next);
        dedup->n_records++;
        return 0;
}

/* Make room for one more record. */
static int make_room(struct dedup *dedup) {
        for (int i = 0; i < DROPPED_MAX && dedup->n_records > 0 && dedup->n_records >= dedup->n_records_max;
             i++) {
                dedup_forget(dedup, first(dedup));
                dedup->n_dropped_early++;
        }
        return dedup->n_records_max == 0 ? -ENOMEM : 0;
}

bool dedup_add(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
               int64_t deadline_ns, uint32_t *ret_slot) {
        uint32_t slot;

        if (make_room(dedup) == 0 && take_slot(dedup, &slot) == 0) {
                if (add(dedup, slot, digest, answer, deadline_ns) == 0) {
                        *ret_slot = slot;
                        return true;
                }
                release_slot(dedup, slot);
        }

        dedup->n_dropped_early++;
        return false;
}

int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns) {
        int r;

        if (slot >= dedup->n_records_max || dedup->n_records >= dedup->n_records_max ||
            dedup_find(dedup, digest)) {
                dedup->n_dropped_early++;
                return 0;
        }

        r = take_slot_at(dedup, slot);
        if (r < 0)
                return r;
        r = add(dedup, slot, digest, answer, deadline_ns);
        if (r < 0)
                release_slot(dedup, slot);
        return r;
}

void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max) {
        for (uint32_t i = 0; i < n_max && dedup->n_records > 0 && dedup_next_deadline(dedup) <= now_ns; i++)
                dedup_forget(dedup, first(dedup));
}

int64_t dedup_next_deadline(const struct dedup *dedup) {
        return dedup->n_records == 0 ? INT64_MAX : dedup->first_s * NS_PER_S;
}

uint64_t dedup_n_answers(const struct dedup *dedup) {
        return dedup->n_records;
}
