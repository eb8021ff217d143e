/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/ring.h"
#include "control/faults.h"
#include "control/selection.h"

/*
 * The requests that the store received, with their replies, or the notifications, so that tests can check
 * them. They are records of a ring: numbered from 1, and the oldest ones are removed first. ring_clear()
 * restarts the numbers.
 */
#define JOURNAL_RECORDS_MAX 10000
#define JOURNAL_BYTES_MAX   ((size_t)16 << 20)
#define JOURNAL_RING        ((struct ring){ .n_max = JOURNAL_RECORDS_MAX, .n_bytes_max = JOURNAL_BYTES_MAX })

/* A received request, or a notification. All fields are borrowed. */
struct journal_entry {
        int64_t wall_ms;
        bool is_notification;
        enum verb verb; /* of a request */
        struct slice client, key;
        struct slice payload;          /* of a notification: the value; absent: the key was deleted */
        struct slice version;          /* of a notification */
        const struct fault_rule *rule; /* that applies; NULL: none */
        uint64_t connection;           /* of a request */
};

/* Add a copy, and return its number. Without memory, the number has no record. */
uint64_t journal_add(struct ring *journal, const struct journal_entry *entry);

/*
 * The fault rule that applies to a request, for its reply. The rule is valid until the reply: a command that
 * changes the rules is executed after the replies to all earlier requests.
 */
struct injected_fault {
        uint64_t number;               /* of the request */
        const struct fault_rule *rule; /* NULL: none, or the request was removed */
        uint64_t connection;
};
struct injected_fault journal_fault_of(const struct ring *journal, uint64_t number);

/* Store the reply to a request. Ignores removed requests, and a second reply. */
void journal_add_reply(struct ring *journal, uint64_t number, struct slice payload, struct slice version);

/*
 * Remove the matching records. *budget is decremented as by selection_matches(); if it is 0
 * afterwards, some remain.
 */
void journal_remove(struct ring *journal, const struct selection *selection, uint64_t *budget);

/*
 * Limit of the matching steps of journal_count() and journal_write(), so that a command does not
 * delay other requests for long: about 0.1 s. Only long keys with a pattern that backtracks, or a
 * pattern with a long class, need so many steps.
 */
#define JOURNAL_STEPS_MAX (UINT64_C(1) << 24)

/*
 * Count the matching records with a number greater than `after`. Returns 0, or -ERANGE if matching needs
 * more than JOURNAL_STEPS_MAX steps.
 */
int journal_count(const struct ring *journal, const struct selection *selection, uint64_t after,
                  uint64_t *ret_n);

/*
 * Append a line of JSON for each matching record with a number greater than `after`: number, time (ms),
 * client, then of a request: verb, key, request, reply, version; of a notification: key, event (SET or
 * DELETE), value (of SET), version; then fault.
 *
 * The field request is an array of words. If the request is malformed, or its words are not valid UTF-8
 * or more than 16, the line has the field payload instead. A field whose bytes are not UTF-8 is in
 * base64, and its name ends in _base64 (json_add_bytes()). Returns as journal_count(). After an error
 * some lines are missing.
 */
int journal_write(const struct ring *journal, const struct selection *selection, uint64_t after,
                  struct buf *lines);
