/* SPDX-License-Identifier: Apache-2.0 */

#include "app/ready_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

void ready_file_remove(const char *name) {
        if (name && unlink(name) < 0 && errno != ENOENT)
                log_warning("cannot remove the ready file \"%s\": %s", LOG_STRING(name), strerror(errno));
}

/*
 * Write a new file. If the name exists, delete it first: a crash may have left a file. Never write
 * through an existing name: it may be a symbolic link to another file, or a pipe, which would
 * block.
 */
static int write_whole(const char *name, const char *text) {
        ssize_t n_written;
        int fd;

        if (unlink(name) < 0 && errno != ENOENT)
                return -errno;
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;

        n_written = write(fd, text, strlen(text));
        close(fd);
        return n_written == (ssize_t)strlen(text) ? 0 : -EIO;
}

void ready_file_write(const char *name, const char *text) {
        CLEANUP(cleanup_free) char *unfinished = NULL;
        int r;

        if (!name)
                return;

        r = asprintf(&unfinished, "%s.new", name) < 0 ? -ENOMEM : write_whole(unfinished, text);
        if (r == 0 && rename(unfinished, name) < 0)
                r = -errno;
        if (r < 0)
                log_error("cannot write the ready file \"%s\": %s", LOG_STRING(name), strerror(-r));
}
