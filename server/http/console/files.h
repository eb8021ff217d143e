/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* The files below server/http/console, which are part of the program. embed.py makes the table. */
struct console_file {
        const char *path; /* of the address; "/" for index.html */
        const char *content_type;
        const char *tag; /* for the header ETag: changes with the content */
        struct slice content;
};

extern const struct console_file console_files[];
extern const size_t n_console_files;
