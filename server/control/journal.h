/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "control/selection.h"

/*
 * The requests that the store received, in order, with their answers, for assertions of tests. Bounded in
 * number and bytes: the oldest requests are removed first. All zeros is an empty journal.
 */
struct journal {
        struct exchange **exchanges; /* ring buffer, by number */
        uint64_t first, next;        /* numbers, from 0; shown to clients from 1 */
        size_t n_bytes;
};

#define JOURNAL_EXCHANGES_MAX 10000
#define JOURNAL_BYTES_MAX     ((size_t)16 << 20)

void journal_clear(struct journal *journal);
void journal_deinit(struct journal *journal);

/* A received request. All fields are borrowed. */
struct journal_request {
        int64_t wall_ms;
        struct slice client;
        enum verb verb; /* N_VERBS: unknown */
        struct slice key;
        struct slice payload;
        const char *fault; /* name of the injected fault, a literal; NULL: none */
};

/* Returns the number of the request, 0 if it could not be stored. */
uint64_t journal_add(struct journal *journal, const struct journal_request *request);

/* Store the answer to a request. Ignores number 0 and requests that were removed. */
void journal_answer(struct journal *journal, uint64_t number, struct slice payload, struct slice version);

/* The number of matching requests after number `after`. */
uint64_t journal_count(const struct journal *journal, const struct selection *selection, uint64_t after);

/*
 * Append the matching requests, a line of JSON each: number, time (ms), client, verb, key, answer, version,
 * fault, and the words as "request" or, if they are not valid UTF-8, the "payload".
 */
void journal_write(const struct journal *journal, const struct selection *selection, uint64_t after,
                   struct buf *lines);
