/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/*
 * Open /dev/null with these flags for each of stdin, stdout and stderr that is closed. Otherwise a
 * file or a socket that is opened later could become descriptor 1 or 2, and output would be written
 * to it. Call first in main().
 */
static inline void standard_descriptors_open(int flags) {
        int fd;

        do
                fd = open("/dev/null", flags);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
}
