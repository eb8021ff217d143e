/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "control/selection.h"

struct exchange;

/*
 * The requests that the store received, with their replies, so that tests can check them. A request
 * with its reply is an exchange. The number of exchanges and their bytes are limited: the oldest
 * exchanges are removed first. All zeros is an empty journal.
 *
 * Requests are numbered from 1. journal_clear() restarts the numbers.
 */
struct journal {
        struct exchange **exchanges; /* ring buffer of JOURNAL_SLOTS; NULL: removed */
        uint64_t first, next;        /* indexes of exchanges; the number of a request is its index + 1 */
        size_t n_bytes;
};

/* One slot stays free: a new exchange is added before the oldest one is removed. */
#define JOURNAL_SLOTS     10000
#define JOURNAL_BYTES_MAX ((size_t)16 << 20)

void journal_clear(struct journal *journal);
void journal_deinit(struct journal *journal);

/*
 * Remove the matching requests. *budget is decremented as by selection_matches(); if it is 0
 * afterwards, some remain.
 */
void journal_remove(struct journal *journal, const struct selection *selection, uint64_t *budget);

/* A received request. All fields are borrowed. */
struct journal_request {
        int64_t wall_ms;
        struct slice client;
        enum verb verb;
        struct slice key;
        struct slice payload;
        const char *fault; /* name of the injected fault, a literal; NULL: none */
};

/* Return the number of the request; 0 if memory is exhausted. */
uint64_t journal_add(struct journal *journal, const struct journal_request *request);

/* Store the reply to a request. Ignores number 0, removed requests, and a second reply. */
void journal_add_reply(struct journal *journal, uint64_t number, struct slice payload, struct slice version);

/*
 * Limit of the matching steps of journal_count() and journal_write(), so that a command does not
 * delay other requests for long: about 0.1 s. Only long keys with a pattern that backtracks, or a
 * pattern with a long class, need so many steps.
 */
#define JOURNAL_STEPS_MAX (UINT64_C(1) << 24)

/*
 * Count the matching requests with a number greater than `after`. Returns 0, or -ERANGE if matching
 * needs more than JOURNAL_STEPS_MAX steps.
 */
int journal_count(const struct journal *journal, const struct selection *selection, uint64_t after,
                  uint64_t *ret_n);

/* Appends the fields of an exchange that only this kind of journal has. */
typedef void journal_format(const struct exchange *exchange, struct buf *line);

/*
 * A request: verb, key, request, reply, version. The field request is an array of words. If the
 * request is malformed, or its words are not valid UTF-8 or more than 16, the line has the field
 * payload instead.
 */
journal_format journal_format_request;

/*
 * A notification: key, event (SET or DELETE), value (of SET), version. The verb of a notification is
 * VERB_SET or VERB_DEL, its payload is the value, and its version is stored with journal_add_reply().
 */
journal_format journal_format_notification;

/*
 * Append a line of JSON for each matching request with a number greater than `after`: number, time
 * (ms), client, the fields of the format, fault. A field whose bytes are not UTF-8 is in base64, and
 * its name ends in _base64 (json_add_bytes()). Returns as journal_count(). After an error some lines
 * are missing.
 */
int journal_write(const struct journal *journal, const struct selection *selection, uint64_t after,
                  journal_format *format, struct buf *lines);
