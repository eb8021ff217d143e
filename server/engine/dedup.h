/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/hash.h"
#include "engine/uthash_table.h"

/*
 * Remembered replies, so that a request which MQTT delivers twice is executed once (PROTOCOL.md "Repeated requests"). Each
 * reply is remembered until its deadline. All replies together use a limited amount of memory.
 *
 * Clients share the memory. A digest of the client id assigns each client to one of DEDUP_N_GROUPS groups. If the memory is
 * full, the group with the most records loses one. So a client that sends many requests does not make the store
 * forget the replies to clients of smaller groups. Dropped replies are counted.
 *
 * A keyed digest identifies each request. It is also the hash in the hash tables.
 */

/* The remembered fields of a reply. */
struct remembered_reply {
        int64_t version_wall_ms;
        uint32_t version_counter;
        uint16_t outcome;
        bool has_version;
};

struct dedup_record {
        UT_hash_handle hh; /* by digest */
        struct digest digest;
        struct dedup_record *next, *previous; /* records with the same deadline, or free records; utlist */
        struct dedup_record *newer, *older;   /* records of the same group; utlist */
        struct remembered_reply reply;
        uint32_t deadline_s; /* low 32 bits of the monotonic deadline in seconds */
        uint32_t slot;       /* the record's slot in storage; unique */
        uint16_t group;
};

/* The replies to the clients of one group. */
struct dedup_group {
        struct dedup_record *oldest;
        uint64_t n_records;
};

#define DEDUP_N_GROUPS 1024

/* Deadlines are rounded up to whole seconds. The earliest and the latest are less than this number of seconds apart. */
#define DEDUP_SPAN_S 1024

/* Records are allocated in blocks of this number. */
#define DEDUP_BLOCK_RECORDS 2048

#define DEDUP_SHARD_BITS 10
#define DEDUP_N_SHARDS   (UINT32_C(1) << DEDUP_SHARD_BITS)

struct dedup {
        struct dedup_record *shards[DEDUP_N_SHARDS]; /* hash tables: see engine/uthash_table.h */

        /* Timing wheel: for each second modulo DEDUP_SPAN_S, the records with this deadline, in the order of insertion. */
        struct dedup_record *seconds[DEDUP_SPAN_S];
        int64_t first_s; /* the first second with a record */
        int64_t last_s;  /* no record is in a later second; not lowered on removal */

        struct dedup_group groups[DEDUP_N_GROUPS + 1]; /* the last one: replies that an earlier run stored */
        uint64_t n_records, n_records_max;
        uint64_t n_dropped_early;     /* replies forgotten before their deadline, or never remembered */
        struct dedup_record **blocks; /* of DEDUP_BLOCK_RECORDS slots each */
        size_t blocks_capacity;
        struct dedup_record *free_records; /* the unused slots below n_slots */
        uint32_t n_slots;
};

/* Initialize. n_bytes_max: limit of the memory of all records; 0: remember nothing. */
void dedup_init(struct dedup *dedup, uint64_t n_bytes_max);
void dedup_deinit(struct dedup *dedup);

/* Change the limit. If it is lower, the next dedup_add() calls drop the excess records. */
void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max);

/* Return the record with this digest, even if its deadline has passed; NULL if there is none. Borrowed. */
struct dedup_record *dedup_find(const struct dedup *dedup, const struct digest *digest);

/* Return whether the record's deadline has passed. */
bool dedup_is_expired(const struct dedup *dedup, const struct dedup_record *record, int64_t now_ns);

/* A remembered reply, as the storage stores it. */
struct reply_row {
        struct digest digest;
        struct remembered_reply reply;
        int64_t deadline_ns; /* remember the reply until then; monotonic */
        uint32_t slot;       /* the place in storage; this reply replaces the former reply in the slot */
};

/*
 * Remember a reply. Its digest must not be present (dedup_find()). client: a digest of the client id. Sets row->slot.
 * Returns false if there is not enough memory; this counts as dropped early.
 */
bool dedup_add(struct dedup *dedup, const struct digest *client, struct reply_row *row);

/*
 * Restore a reply that an earlier run stored. Call in ascending order of slots, before the first dedup_add(). The client of a
 * restored reply is not known, so all restored replies are in one additional group.
 *
 * The limit of all records may be lower than in the earlier run. If there are too many replies, those with the latest deadlines
 * are restored, and the others count as dropped early. A reply whose slot is above the limit gets another slot in memory. Its
 * row in the storage stays in the former slot. No other reply gets the former slot, unless the limit is raised again.
 *
 * Returns 0, -EBADMSG if it detects that slots do not ascend, or -ENOMEM.
 */
int dedup_restore(struct dedup *dedup, const struct reply_row *row);

/* Remove the record and release its memory. */
void dedup_forget(struct dedup *dedup, struct dedup_record *record);

/* Forget up to n_max records whose deadline has passed. */
void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max);

/* The earliest deadline in monotonic nanoseconds; INT64_MAX if there is no record. */
int64_t dedup_next_deadline(const struct dedup *dedup);
