/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/read_ahead.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef ssize_t (*read_function)(int fd, void *bytes, size_t size);

static _Thread_local struct read_ahead *in_use;

void read_ahead_begin(struct read_ahead *ahead, int fd) {
        ahead->fd = fd;
        ahead->may_receive = true;
        ahead->may_have_more = false;
        in_use = ahead;
}

void read_ahead_end(void) {
        in_use = NULL;
}

bool read_ahead_has_bytes(const struct read_ahead *ahead) {
        return ahead->begin < ahead->end;
}

bool read_ahead_may_have_more(const struct read_ahead *ahead) {
        return ahead->may_have_more;
}

void read_ahead_drop(struct read_ahead *ahead) {
        ahead->may_receive = false;
        ahead->may_have_more = false;
        ahead->begin = 0;
        ahead->end = 0;
}

void read_ahead_forget(struct read_ahead *ahead) {
        read_ahead_drop(ahead);
        ahead->fd = -1;
}

static ssize_t system_read(int fd, void *bytes, size_t size) {
        static _Atomic(read_function) found;
        read_function next = found;

        if (!next) {
                *(void **)&next = dlsym(RTLD_NEXT, "read");
                found = next;
        }
        return next(fd, bytes, size);
}

static ssize_t receive(struct read_ahead *ahead, void *bytes, size_t size) {
        ssize_t r;

        if (!ahead->may_receive) {
                errno = EAGAIN;
                return -1;
        }

        ahead->may_receive = false;
        r = recv(ahead->fd, bytes, size, 0);
        ahead->may_have_more = r == (ssize_t)size;
        return r;
}

static ssize_t serve(struct read_ahead *ahead, void *bytes, size_t size) {
        size_t n_kept;
        ssize_t r;

        if (!read_ahead_has_bytes(ahead)) {
                if (size >= sizeof(ahead->bytes)) /* it need not be kept in between */
                        return receive(ahead, bytes, size);
                r = receive(ahead, ahead->bytes, sizeof(ahead->bytes));
                if (r <= 0)
                        return r;
                ahead->begin = 0;
                ahead->end = (size_t)r;
        }

        n_kept = ahead->end - ahead->begin;
        if (size > n_kept)
                size = n_kept;
        memcpy(bytes, ahead->bytes + ahead->begin, size);
        ahead->begin += size;
        return (ssize_t)size;
}

/* Stands before the C library's, for shared libraries too. */
ssize_t read(int fd, void *bytes, size_t size) {
        return in_use && in_use->fd == fd ? serve(in_use, bytes, size) : system_read(fd, bytes, size);
}
