/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * Parses files of [section], name = value (or name: value) and comments. A comment is a line that
 * begins with '#' or ';'. Lines may be indented. A line is shorter than 200 bytes, a file
 * at most INI_FILE_LENGTH_MAX bytes long. All strings are borrowed for the call. The argument
 * `where` is "FILE:LINE", or the file name.
 */
struct ini_sink {
        /* A section begins. May be NULL. */
        void (*section)(void *userdata, const char *name, unsigned int line);
        void (*value)(void *userdata, const char *section, const char *name, const char *value,
                      unsigned int line);
        void (*fault)(void *userdata, const char *where, const char *what);
        void *userdata;
};

/* Maximum length of a file in bytes. The largest policy (policy/policy_build.h) is shorter. */
#define INI_FILE_LENGTH_MAX ((size_t)64 << 20)

/*
 * Parse the file. Reports each syntax error and continues after it. A pipe is read to its end.
 */
void ini_file_read(const char *name, const struct ini_sink *sink);

struct ini_position {
        char text[300];
};

/* Return "FILE:LINE". */
struct ini_position ini_position(const char *name, unsigned int line);
