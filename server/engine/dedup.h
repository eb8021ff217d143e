/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * The replies that were given lately, so that a request which MQTT delivers twice is executed once
 * (PROTOCOL.md "Repeated requests").
 * Bounded by bytes and by time: at the limit of bytes the reply that would be forgotten first goes early, and is counted.
 *
 * Requests are identified by a keyed digest, which is also the hash of the tables.
 */

/* What is remembered of a reply. Its meaning is the engine's. */
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
                *previous; /* of those that are forgotten in the same second, or are free; utlist */
        struct remembered_answer answer;
        uint32_t deadline_s; /* its low bits, which are enough within the span */
        uint32_t slot;       /* where storage keeps it: no two records have the same */
};

/* Deadlines are whole seconds, rounded up, and lie within a span: longer than any reply is remembered. */
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

/* Change the limit. Where less is remembered from now on, further records go with the next dedup_add() calls. */
void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max);

/* Borrowed; NULL where there is none. Also finds a record whose deadline has passed. */
struct dedup_record *dedup_find(const struct dedup *dedup, const struct digest *digest);

/* Whether the record's deadline has passed. */
bool dedup_is_over(const struct dedup *dedup, const struct dedup_record *record, int64_t now_ns);

/*
 * Remember a reply until deadline_ns. dedup_find() must not find its digest. *ret_slot: the slot it is kept in; what was
 * kept there before is forgotten. False: it is not remembered, for want of memory, which counts as dropped early.
 */
bool dedup_add(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
               int64_t deadline_ns, uint32_t *ret_slot);

/*
 * Remember again what an earlier run stored, in its slot. Slots come in ascending order and before the first dedup_add().
 * A record beyond the present limit is dropped early. Returns 0; -EBADMSG where slots do not ascend; or -ENOMEM.
 */
int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns);

/* Frees the record. */
void dedup_forget(struct dedup *dedup, struct dedup_record *record);

/* Forget up to n_max records whose deadline has passed. */
void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max);

/* When the next record is to be forgotten, INT64_MAX for never. */
int64_t dedup_next_deadline(const struct dedup *dedup);

uint64_t dedup_n_answers(const struct dedup *dedup);
