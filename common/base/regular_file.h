/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Files that are read while an event loop runs. A pipe, a terminal or a device is an error: it
 * could block the loop, or have no end.
 */
enum regular_file_result {
        REGULAR_FILE_NOT_REGULAR = 1, /* a directory, a pipe, a device or a socket */
        REGULAR_FILE_TOO_LONG,        /* longer than length_max bytes */
};

/*
 * Append the content. Returns 0, an enum regular_file_result, or the -errno of opening or reading.
 */
int regular_file_read(const char *name, size_t length_max, struct buf *content);

/* Check a file that a library will read, with the results of regular_file_read(). */
int regular_file_check(const char *name, size_t length_max);

struct regular_file_fault {
        char text[80];
};

/* Describe a result other than 0, for people; the text does not contain the file's name. */
struct regular_file_fault regular_file_fault(int result, size_t length_max);
