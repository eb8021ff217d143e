/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fair_queue/fair_queue.h"
#include "protocol/frame.h"

/*
 * The records for the store: queued by client until they are numbered, then kept in the order of
 * their numbers until the store has reported their end. The lists own the records, and the
 * connections that have ended. to_store.h sends the records.
 */

struct connection;
struct plugin;
struct record;

/* All records that have not ended. */
struct records {
        struct fair_queues queues; /* those without a number */
        struct record *by_arrival; /* the requests in the queues, the oldest first */
        struct record *numbered;   /* in the order of their numbers */
        struct record *unsent;     /* the first of them that was not sent since WELCOME, or NULL */
        uint64_t last_number;
};

/* Free all records, and the connections that are closed. */
void records_deinit(struct plugin *plugin);

/*
 * Copy a request of the connection; free() it, or call records_add_request(). A request that exceeds its
 * client's share is refused: its properties and payload are not copied. Returns NULL if out of memory.
 */
struct record *records_copy_request(const struct plugin *plugin, struct connection *connection,
                                    struct frame_request request);

/* Queue a copied request, or reply to a refused one. Takes ownership, needs no memory to queue it. */
void records_add_request(struct plugin *plugin, struct record *record);

/* Queue the disconnect of a connection, which is not open any more, behind its requests. */
void records_add_disconnect(struct plugin *plugin, struct connection *connection);

/*
 * Return the record to send behind `last` in the same frame, or as the first of a frame if `last` is NULL:
 * a numbered one that was not sent since WELCOME, else one that waits, in turn between the clients. NULL:
 * there is none.
 */
struct record *records_next(const struct records *records, const struct record *last);

/* Number this record, which records_next() has returned, unless it has a number. */
void records_number(struct records *records, struct record *record);

/* All records up to this one, which is numbered, are sent. */
void records_sent(struct records *records, const struct record *last);

/* Return the number of the next record to send. */
uint64_t records_next_number(const struct records *records);

/* WELCOME is sent: all numbered records count as not sent. */
void records_restart(struct records *records);

/* Return the numbered request with this number, or NULL. */
struct record *records_find(const struct records *records, uint64_t number);

/*
 * Free all records up to this number, which have ended. Returns 0, or -EBADMSG if the number is not
 * assigned yet.
 */
int records_end(struct plugin *plugin, uint64_t number);

/* Free all numbered records. */
void records_end_all(struct plugin *plugin);

/* Reply to the requests that have waited too long, and free them. */
void records_expire(struct plugin *plugin, int64_t now_ns);
