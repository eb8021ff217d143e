/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Read-ahead for the socket of the broker. libmosquitto reads each packet with three or four calls
 * of read(): the type, the bytes of the length, and the rest. With read-ahead the first call
 * receives what the socket has, up to the size of a buffer, and the next calls are served from the
 * buffer. This saves most with a data directory: the store sends the replies of one commit
 * together, so the next requests of these clients also arrive together.
 *
 * The program defines read(), so that calls of the shared library libmosquitto reach this module.
 * The module serves a call only between read_ahead_begin() and read_ahead_end(), in the thread and
 * for the descriptor of read_ahead_begin(). It passes each other call to the next definition, which
 * is the one of the C library or of a sanitizer, and which it resolves before main(). It overrides
 * no other function.
 *
 * If libmosquitto stops calling read(), for instance after an upgrade, the buffer stays empty and
 * libmosquitto reads from the socket as without this module. Only speed is lost.
 * tests/integration/mqtt/test_link_system_calls.py fails then.
 *
 * The socket may have no event for buffered bytes. So the caller repeats mosquitto_loop_read()
 * until read_ahead_has_bytes() is false. read_ahead_end() discards the buffer, so no bytes of this
 * connection are read from the next one.
 */
struct read_ahead {
        int fd;
        bool has_received;
        bool is_drained;
        size_t begin, end; /* unread bytes of buffer */
        uint8_t buffer[16 << 10];
};

/*
 * Serve this thread's read() of fd, a non-blocking stream socket, from *ahead until
 * read_ahead_end(). Only the first read() receives from the socket. When its bytes are used up,
 * read() fails with EAGAIN, although the socket may have more. Only one struct read_ahead can be in
 * use in a thread.
 */
void read_ahead_begin(struct read_ahead *ahead, int fd);

/*
 * From now on pass each read() to the next definition. Discard the buffer. Call it before fd is
 * used for another file. The function has no effect without read_ahead_begin().
 */
void read_ahead_end(void);

/* Whether this thread has buffered bytes. */
bool read_ahead_has_bytes(void);

/*
 * Whether the socket had fewer bytes than requested since the latest read_ahead_begin(). If not, it
 * may have more.
 */
bool read_ahead_is_drained(const struct read_ahead *ahead);
