/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * Remembered replies, so that a request which MQTT delivers twice is executed once (PROTOCOL.md "Repeated requests"). Bounded
 * by time and memory: at the limit of memory, the reply with the earliest deadline is dropped and counted.
 *
 * Requests are identified by a keyed digest, which is also the hash of the tables.
 */

/* The remembered fields of a reply. */
struct remembered_answer {
        int64_t version_wall_ms;
        uint32_t version_counter;
        uint16_t outcome;
        bool has_version;
};

struct dedup_record {
        UT_hash_handle hh; /* by digest */
        struct digest digest;
        struct dedup_record *next,
                *previous; /* list of records with the same deadline, or of free records; utlist */
        struct remembered_answer answer;
        uint32_t deadline_s; /* low 32 bits */
        uint32_t slot;       /* the record's slot in storage; unique */
};

/* Deadlines are rounded up to whole seconds. They all lie within this span, which exceeds ENGINE_REMEMBERED_MAX_S. */
#define DEDUP_SPAN_S 1024

/*
 * Blocks are mapped with mmap(), so that freeing them returns their memory to the system. malloc() would take a block
 * from the top of the heap if it fits there. The entries that follow would then keep the freed block resident.
 */
#define DEDUP_BLOCK_RECORDS 2048

#define DEDUP_SHARD_BITS 10
#define DEDUP_N_SHARDS   (UINT32_C(1) << DEDUP_SHARD_BITS)

struct dedup {
        struct dedup_record *shards[DEDUP_N_SHARDS]; /* hash tables: see engine/uthash_table.h */
        struct dedup_record
                *seconds[DEDUP_SPAN_S]; /* lists, by their number modulo the span, oldest first */
        int64_t first_s;                /* the first one that is not empty */
        int64_t last_s;                 /* at or after the last one that is not */
        uint64_t n_records, n_records_max;
        uint64_t n_dropped_early;
        struct dedup_record **blocks; /* the memory of all records: of DEDUP_BLOCK_RECORDS slots each */
        size_t blocks_capacity;
        struct dedup_record *free_records; /* those of the slots below n_slots that are not in use */
        uint32_t n_slots;
};

/* n_bytes_max: of all records; 0 remembers nothing. */
void dedup_init(struct dedup *dedup, uint64_t n_bytes_max);
void dedup_deinit(struct dedup *dedup);

/* Change the limit. If it is lower, the next dedup_add() calls drop the excess records. */
void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max);

/* Borrowed; NULL if there is none. Also finds a record whose deadline has passed. */
struct dedup_record *dedup_find(const struct dedup *dedup, const struct digest *digest);

/* Whether the record's deadline has passed. */
bool dedup_is_over(const struct dedup *dedup, const struct dedup_record *record, int64_t now_ns);

/*
 * Remember a reply until deadline_ns. Its digest must not be present (dedup_find()). *ret_slot is the slot of the record.
 * Returns false if there is not enough memory; this counts as dropped early.
 */
bool dedup_add(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
               int64_t deadline_ns, uint32_t *ret_slot);

/*
 * Restore a reply that an earlier run stored. Call in ascending order of slots, before the first dedup_add(). Drops records
 * beyond the limit, and counts them as dropped early. Returns 0, -EBADMSG if slots do not ascend, or -ENOMEM.
 */
int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns);

/* Frees the record. */
void dedup_forget(struct dedup *dedup, struct dedup_record *record);

/* Forget up to n_max records whose deadline has passed. */
void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max);

/* The earliest deadline in monotonic nanoseconds; INT64_MAX if there is no record. */
int64_t dedup_next_deadline(const struct dedup *dedup);

uint64_t dedup_n_answers(const struct dedup *dedup);
