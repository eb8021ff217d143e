/* SPDX-License-Identifier: Apache-2.0 */

#include "ready_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/log.h"

void ready_file_remove(const char *name) {
        if (name && unlink(name) < 0 && errno != ENOENT)
                log_warning("cannot remove the ready file \"%s\": %s", LOG_TEXT(slice_from_string(name)),
                            strerror(errno));
}

void ready_file_write(const char *name) {
        int fd;

        if (!name)
                return;

        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || dprintf(fd, "ready\n") < 0)
                log_error("cannot write the ready file \"%s\": %s", LOG_TEXT(slice_from_string(name)),
                          strerror(errno));
        if (fd >= 0)
                close(fd);
}
