/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/outcome.h"
#include "engine/request.h"
#include "engine/verb.h"

/*
 * The last events of the store, for the console: changes of keys after their commit, and requests
 * that were refused or whose condition was not met. A ring in memory: the oldest event makes room for
 * the next one, at EVENT_LOG_EVENTS_MAX events or EVENT_LOG_BYTES_MAX bytes.
 *
 * Events are added while a batch is executed, and readers see them after event_log_commit(). Each event
 * has a number, one above that of the event before it, which no other one gets. So a reader notices
 * what it has missed. Any number of readers; a reader is only the number of the last event it has read.
 *
 * No I/O, no clock. Not thread-safe.
 */
#define EVENT_LOG_EVENTS_MAX 10000
#define EVENT_LOG_BYTES_MAX  ((size_t)4 << 20)

/* A key, client id or user name that is longer is shortened to this length. */
#define EVENT_LOG_TEXT_MAX 1024

struct event_log;

enum logged_kind {
        LOGGED_NOTHING, /* a change that was rolled back; readers do not see it */
        LOGGED_SET,
        LOGGED_DELETE,
        LOGGED_EXPIRE,
        LOGGED_UNMET,   /* the condition of the request was not met: NX, NEX, or the value of VDEL */
        LOGGED_REFUSED, /* the request got an error */
};

struct logged_event {
        uint64_t number;
        int64_t wall_ms;
        enum logged_kind kind;
        struct slice key;             /* absent: the request was not decoded */
        bool is_key_shortened;        /* the key has more bytes */
        struct request_origin origin; /* texts absent: unknown, or there was no request */
        bool has_version;
        struct version version; /* of the new value, or of the last one */
        uint64_t n_bytes;       /* of the new value, or of the payload if there is no change */
        enum verb verb;         /* VERB_UNKNOWN: unknown, or there was no request */
        struct slice error;     /* LOGGED_UNMET, LOGGED_REFUSED: why; exists as long as the process */
};

/* Returns 0 or -ENOMEM; the caller owns *ret_log. */
int event_log_new(struct event_log **ret_log);

/* Accepts NULL, returns NULL. */
struct event_log *event_log_free(struct event_log *log);

/*
 * Add an event of the present batch. number and is_key_shortened are ignored; texts are copied, except
 * that of the error. If memory is short, the event is lost, and readers notice it.
 */
void event_log_add(struct event_log *log, const struct logged_event *event);

/* The changes of the batch are durable: readers see its events. */
void event_log_commit(struct event_log *log);

/* They were rolled back: each change by a request becomes a refused request with this error. */
void event_log_roll_back(struct event_log *log, struct slice error);

/* The number of the last event that readers see, and of the one before the oldest event in memory. */
uint64_t event_log_last(const struct event_log *log);
uint64_t event_log_before_oldest(const struct event_log *log);

/*
 * Return the first event after *number that readers see, borrowed until the next event_log_add(); NULL
 * if there is none. Sets *number to the number of this event, or of the last one that was skipped.
 * Adds to *n_lost the number of events that the reader has missed.
 */
const struct logged_event *event_log_next(const struct event_log *log, uint64_t *number, uint64_t *n_lost);
