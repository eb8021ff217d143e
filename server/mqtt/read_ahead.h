/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * libmosquitto reads a packet in three or four parts: its type, each byte of its length, the rest. Each part is a
 * read(), a system call of its own, and one more finds that there is nothing left. Here what has come is taken at once
 * and kept, and those reads are served from memory.
 *
 * This works by a read() of ours, which stands before the C library's. Only that of one socket, by one thread, between
 * read_ahead_begin() and read_ahead_end(), is not the system's.
 */
struct read_ahead {
        int fd;
        bool may_receive;
        bool may_have_more;
        size_t begin, end; /* what is kept, within bytes; all zeros is fine to begin with */
        uint8_t bytes[16 << 10];
};

/*
 * From here on this thread's read() of fd, a stream socket, is served. The socket is asked once: when what it gave has
 * been read, read() fails with EAGAIN until the next read_ahead_begin(), though there may be more.
 *
 * One at a time. Nothing may be kept that is another socket's: read_ahead_forget().
 */
void read_ahead_begin(struct read_ahead *ahead, int fd);
void read_ahead_end(void);

/* Whether anything is kept that was not read. The socket is not readable for its sake. */
bool read_ahead_has_bytes(const struct read_ahead *ahead);

/* Whether the socket gave as much as was asked for, so that there may be more. */
bool read_ahead_may_have_more(const struct read_ahead *ahead);

/* What the socket gave is not wanted any more: until the next read_ahead_begin() there is nothing to read. */
void read_ahead_drop(struct read_ahead *ahead);

/* The socket has been closed, or nobody will read it again: its bytes are nobody's, its number may be anybody's. */
void read_ahead_forget(struct read_ahead *ahead);
