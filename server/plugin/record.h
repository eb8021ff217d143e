/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "fair_queue/fair_queue.h"
#include "protocol/frame.h"

/* One record for the store. records.h lists the records. */

struct connection;

/*
 * A record for the store (frame_to_store_record): a request, or the end of a connection. First it
 * waits in the queue of its client. It is numbered when it is put into a frame, and is then in the
 * list of numbered records until it has ended.
 */
struct record {
        struct fair_item waiting;      /* first: a pointer to it is a pointer to the record */
        struct record *prev, *next;    /* in one of the lists of struct records */
        struct connection *connection; /* stays until the end of its last record */
        uint64_t number;               /* 0: it waits */
        int64_t expires_ns;            /* CLOCK_MONOTONIC: until then it may wait; INT64_MAX: no limit */
        bool is_request;
        bool is_refused;              /* a request that exceeds its client's share */
        size_t n_bytes;               /* of a request: what it takes in the queue */
        struct frame_request request; /* its bytes are directly behind this struct */
};

/* Copy a request of the connection; free() it. Returns NULL if out of memory. */
struct record *record_new(struct connection *connection, const struct frame_request *request);

/* The memory of a record with this request. */
size_t record_size(const struct frame_request *request);
