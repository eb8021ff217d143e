/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Reads what a test makes the code print. Ends with the test's process, so nothing is put back on a failure. */

struct capture {
        int fd;    /* the captured descriptor */
        int saved; /* a duplicate of the original */
        int file;
};

/* fd: STDOUT_FILENO or STDERR_FILENO. */
void capture_start(struct capture *capture, int fd);

/* All that was printed since; freed by the caller. */
char *capture_end(struct capture *capture);

/* How often the part stands in what was printed. */
size_t capture_count(const char *printed, const char *part);
