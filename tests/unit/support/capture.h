/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Reads what a test makes the code print. A failed assertion leaves the descriptor redirected. That
 * is harmless: each test has its own process.
 */

struct capture {
        int fd;    /* the captured descriptor */
        int saved; /* a duplicate of the original */
        int file;
};

/* fd: STDOUT_FILENO or STDERR_FILENO. */
void capture_start(struct capture *capture, int fd);

/*
 * Restore the descriptor, and return all that was printed since capture_start(). Freed by the
 * caller.
 */
char *capture_end(struct capture *capture);

/* Return how often the part occurs in the printed text. */
size_t capture_count(const char *printed, const char *part);
