/* SPDX-License-Identifier: Apache-2.0 */

#include "mqtt/read_ahead.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*read_function)(int fd, void *bytes, size_t size);

/* Constructors of shared libraries may call read() before the next definition is resolved. */
static ssize_t read_before_main(int fd, void *bytes, size_t size) {
        return readv(fd, &(struct iovec){ bytes, size }, 1);
}

static _Thread_local struct read_ahead *active;
static read_function next_read = read_before_main;

__attribute__((constructor)) static void resolve_next_read(void) {
        void *found = dlsym(RTLD_NEXT, "read");

        if (found)
                *(void **)&next_read = found;
}

void read_ahead_begin(struct read_ahead *ahead, int fd) {
        ahead->fd = fd;
        ahead->has_received = false;
        ahead->is_drained = false;
        ahead->begin = 0;
        ahead->end = 0;
        active = ahead;
}

void read_ahead_end(void) {
        active = NULL;
}

bool read_ahead_has_bytes(void) {
        return active && active->begin < active->end;
}

bool read_ahead_is_drained(const struct read_ahead *ahead) {
        return ahead->is_drained;
}

static ssize_t receive(struct read_ahead *ahead, void *bytes, size_t size) {
        ssize_t r;

        if (ahead->has_received) {
                errno = EAGAIN;
                return -1;
        }

        r = recv(ahead->fd, bytes, size, 0);
        ahead->has_received = true;
        ahead->is_drained = r < (ssize_t)size;
        return r;
}

static ssize_t read_buffered(struct read_ahead *ahead, void *bytes, size_t size) {
        size_t n_buffered;
        ssize_t r;

        if (ahead->begin == ahead->end) {
                if (size >= sizeof(ahead->buffer)) /* the rest of a large packet needs no copy */
                        return receive(ahead, bytes, size);

                r = receive(ahead, ahead->buffer, sizeof(ahead->buffer));
                if (r <= 0)
                        return r;
                ahead->end = (size_t)r;
        }

        n_buffered = ahead->end - ahead->begin;
        if (size > n_buffered)
                size = n_buffered;
        memcpy(bytes, ahead->buffer + ahead->begin, size);
        ahead->begin += size;
        return (ssize_t)size;
}

/* Overrides the definition of the C library, also for shared libraries. */
__attribute__((visibility("default"))) ssize_t read(int fd, void *bytes, size_t size) {
        if (active && active->fd == fd)
                return read_buffered(active, bytes, size);
        return next_read(fd, bytes, size);
}
