/* SPDX-License-Identifier: Apache-2.0 */

#include "unit/support/capture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void capture_start(struct capture *capture, int fd) {
        fflush(NULL);
        *capture = (struct capture){ .fd = fd, .saved = dup(fd), .file = memfd_create("capture", 0) };
        cr_assert(capture->saved >= 0 && capture->file >= 0);
        cr_assert(dup2(capture->file, fd) >= 0);
}

char *capture_end(struct capture *capture) {
        off_t length;
        char *text;

        fflush(NULL);
        length = lseek(capture->file, 0, SEEK_END);
        text = calloc(1, (size_t)length + 1);
        cr_assert_not_null(text);
        cr_assert_eq(pread(capture->file, text, (size_t)length, 0), length);

        cr_assert(dup2(capture->saved, capture->fd) >= 0);
        close(capture->saved);
        close(capture->file);
        return text;
}

size_t capture_count(const char *printed, const char *part) {
        size_t n = 0;

        for (; (printed = strstr(printed, part)); printed++)
                n++;
        return n;
}
