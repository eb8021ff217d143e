/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "control/selection.h"

/*
 * What was asked, in order, with the answers: so that a test can assert on it. Bounded by number and bytes; the oldest is
 * forgotten first. All zeros is an empty one.
 */
struct journal {
        struct exchange **exchanges; /* a ring, by number */
        uint64_t first, next;        /* numbers; they begin at 0 and are told from 1 */
        size_t n_bytes;
};

#define JOURNAL_EXCHANGES_MAX 10000
#define JOURNAL_BYTES_MAX     ((size_t)16 << 20)

void journal_clear(struct journal *journal);
void journal_deinit(struct journal *journal);

/* A request that arrived. All borrowed. */
struct journal_request {
        int64_t wall_ms;
        struct slice client;
        enum verb verb; /* N_VERBS: not known */
        struct slice key;
        struct slice payload;
        const char *fault; /* what was done wrong to it, a literal; NULL: nothing */
};

/* Returns its number, 0 where it could not be kept. */
uint64_t journal_add(struct journal *journal, const struct journal_request *request);

/* What it was answered. One that was forgotten, or is 0, is passed over. */
void journal_answer(struct journal *journal, uint64_t number, struct slice payload, struct slice version);

/* How many of those that are kept, and come after `after`, match. */
uint64_t journal_count(const struct journal *journal, const struct selection *selection, uint64_t after);

/*
 * Appends them, a line of JSON each: number, time (ms), client, verb, key, answer, version, fault, and the words as
 * "request", or where they are no text the "payload".
 */
void journal_write(const struct journal *journal, const struct selection *selection, uint64_t after,
                   struct buf *lines);
