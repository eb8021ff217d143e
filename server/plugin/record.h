/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fair_queue/fair_queue.h"
#include "protocol/frame.h"

struct connection;

/*
 * A record for the store (frame_to_store_record): a request, or the disconnect of a client. First it
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
        struct frame_request request; /* its bytes, each text with a NUL, are directly behind this struct */
};
