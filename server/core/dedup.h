/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/hash.h"
#include "core/slots.h"
#include "core/table.h"

/*
 * The answers that were given lately, so that a request which MQTT delivers twice is executed once (protocol
 * section 11). Bounded by bytes and by time; at the byte limit the answer that would be forgotten first goes
 * early, and is counted.
 */

/* What is remembered of an answer. Its meaning is the engine's. */
struct remembered_answer {
        int64_t version_wall_ms;
        uint32_t version_counter;
        uint16_t outcome;
        bool has_version;
};

/*
 * Deadlines are kept in whole seconds, rounded up, and lie within a span of one another: longer than any answer is
 * remembered.
 */
#define DEDUP_SPAN_S 1024

/* Those that are forgotten in one second, as a list of slots. */
struct dedup_second {
        uint32_t first, last;
};

struct dedup {
        struct table table;
        struct slots records;
        struct dedup_second seconds[DEDUP_SPAN_S]; /* by their number, modulo the span */
        int64_t first_s;                           /* the first one that is not empty */
        int64_t last_s;                            /* at or after the last one that is not */
        uint64_t n_records_max;
        uint64_t n_dropped_early;
};

/* n_bytes_max: what all that is remembered may take. 0 remembers nothing. */
int dedup_init(struct dedup *dedup, uint64_t n_bytes_max);
void dedup_deinit(struct dedup *dedup);

/* The limit changes; where less is remembered from now on, the rest goes with the next ones. */
void dedup_set_limit(struct dedup *dedup, uint64_t n_bytes_max);

/* False where it is not remembered, or no longer. */
bool dedup_find(const struct dedup *dedup, const struct digest *digest, int64_t now_ns,
                struct remembered_answer *ret_answer);

/*
 * Remembers the answer until deadline_ns, in the place of one that is remembered under this digest. *ret_slot is
 * the slot it is kept in; what was kept there before is forgotten. False: it is not remembered, for want of memory,
 * which counts as dropped early.
 */
bool dedup_remember(struct dedup *dedup, const struct digest *digest, struct remembered_answer answer,
                    int64_t deadline_ns, uint32_t *ret_slot);

/*
 * Remembers again what was kept of an earlier run, in its slot; slots come in ascending order and before the first
 * dedup_remember(). One beyond the present limit is dropped early. Returns 0 or -ENOMEM.
 */
int dedup_restore(struct dedup *dedup, uint32_t slot, const struct digest *digest,
                  struct remembered_answer answer, int64_t deadline_ns);

/* Forgets it, if it is remembered. */
void dedup_forget(struct dedup *dedup, const struct digest *digest);

/* Forgets up to n_max answers whose deadline has passed. */
void dedup_forget_expired(struct dedup *dedup, int64_t now_ns, uint32_t n_max);

/* When the next answer is to be forgotten, INT64_MAX for never. */
int64_t dedup_next_deadline(const struct dedup *dedup);

uint64_t dedup_n_answers(const struct dedup *dedup);
