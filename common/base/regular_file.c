/* SPDX-License-Identifier: Apache-2.0 */

#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_file(const char *name, size_t length_max, int *ret_fd) {
        struct stat status;

        if (stat(name, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return REGULAR_FILE_NOT_REGULAR;
        if ((uintmax_t)status.st_size > length_max)
                return REGULAR_FILE_TOO_LONG;

        /* O_NONBLOCK, O_NOCTTY: the file may have been replaced since stat() */
        *ret_fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return *ret_fd < 0 ? -errno : 0;
}

int regular_file_read(const char *name, size_t length_max, struct buf *content) {
        int fd = -1, r;

        r = open_file(name, length_max, &fd);
        if (r != 0)
                return r;

        r = buf_append_file(content, fd, length_max);
        close(fd);
        return r == -EFBIG ? REGULAR_FILE_TOO_LONG : r;
}

int regular_file_check(const char *name, size_t length_max) {
        int fd = -1, r;

        r = open_file(name, length_max, &fd);
        if (r == 0)
                close(fd);
        return r;
}

struct regular_file_fault regular_file_fault(int result, size_t length_max) {
        struct regular_file_fault fault;

        if (result == REGULAR_FILE_NOT_REGULAR)
                snprintf(fault.text, sizeof(fault.text), "not a regular file");
        else if (result == REGULAR_FILE_TOO_LONG)
                snprintf(fault.text, sizeof(fault.text), "longer than %zu bytes", length_max);
        else
                snprintf(fault.text, sizeof(fault.text), "%s", strerror(-result));
        return fault;
}
