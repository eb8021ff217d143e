/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads files of [section], name = value (or name: value) and comments. A comment is a line that begins with '#' or ';'.
 * Lines may be indented. A line has fewer than 200 bytes, a section's name fewer than 50.
 * All texts are borrowed for the call. where is FILE:LINE, or the file's name.
 */
struct ini_sink {
        void (*section)(void *userdata, const char *name,
                        unsigned int line); /* a section begins; NULL: not wanted */
        void (*value)(void *userdata, const char *section, const char *name, const char *value,
                      unsigned int line);
        void (*fault)(void *userdata, const char *where, const char *what);
        void *userdata;
};

/* Reports each fault of the file's form and continues behind it. */
void ini_file_read(const char *name, const struct ini_sink *sink);

struct ini_place {
        char text[300];
};

/* FILE:LINE */
struct ini_place ini_place(const char *name, unsigned int line);
