/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "protocol/companion.h"

/*
 * The payload of COMPANION_HELLO, and the text in its reply COMPANION_WELCOME
 * (protocol/companion.h). No I/O, no allocation in the readers. Integers are in big endian.
 */

/*
 * HELLO:
 *
 *   offset  bytes
 *        0      1  COMPANION_VERSION_NUMBER
 *        1      8  run
 *        9      8  number
 *       17      8  served broker run
 *       25     32  key
 *       57         up to the end: instance id
 */
struct handshake_hello {
        uint64_t run;
        uint64_t number; /* of this HELLO: ascends from 1 in each run */
        /* Of the broker that was served last. 0: none. Of a copy: a random number. */
        uint64_t served_broker_run;
        uint8_t key[COMPANION_KEY_SIZE]; /* encrypts WELCOME; the key of frames is derived from it */
        struct slice instance_id;        /* 1 to COMPANION_INSTANCE_MAX bytes; borrowed */
};

/* Append the payload. Check buf_failed() for lack of memory. */
void handshake_hello_append(struct buf *payload, const struct handshake_hello *hello);

/*
 * Parse the payload. The instance id borrows from it. Returns 0, or -EBADMSG for another version or
 * an instance id whose length is not valid.
 */
int handshake_hello_read(struct slice payload, struct handshake_hello *ret_hello);

/*
 * The text that WELCOME contains in encrypted form:
 *
 *   offset  bytes
 *        0      1  COMPANION_VERSION_NUMBER
 *        1      1  flags: 1 takeover; the others are 0
 *        2      8  broker run
 *       10      8  published
 *       18         then for each connection, in any order:
 *                  1  flags: 1 tracked, 2 pending; the others are 0
 *                  8  number, above 0
 */
struct handshake_welcome {
        bool is_takeover; /* another run has sent HELLO between two HELLOs of this run */
        uint64_t broker_run;
        /* The plugin has published the changes up to this sequence completely; 0: none of this instance. */
        uint64_t published;
        struct slice connections; /* handshake_next_connection() */
};

/* An open connection in WELCOME. It is tracked, or has requests that have not ended, or both. */
struct handshake_connection {
        uint64_t number; /* of the connection: see companion.h */
        bool is_tracked;
        bool is_pending; /* it has requests that have not ended */
};

/* Append a connection to the bytes for handshake_welcome.connections, or to the text. */
void handshake_connection_append(struct buf *connections, const struct handshake_connection *connection);

/* Append the text. More connections may follow it. Check buf_failed() for lack of memory. */
void handshake_welcome_append(struct buf *text, const struct handshake_welcome *welcome);

/*
 * Parse and check the whole text. The connections borrow from it. Returns 0, or -EBADMSG for
 * another version or a malformed text.
 */
int handshake_welcome_read(struct slice text, struct handshake_welcome *ret_welcome);

/* Remove the first connection from the slice and return true; false: there is none left. */
bool handshake_next_connection(struct slice *connections, struct handshake_connection *ret_connection);
