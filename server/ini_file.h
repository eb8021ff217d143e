/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of [section], name = value and comments, as inih reads them; lines may be indented and have fewer than 200 bytes.
 * Comments are lines of their own: whatever else inih would leave out is a fault.
 * All texts are borrowed for the call. where is FILE:LINE, or the file's name.
 */
struct ini_sink {
        void (*section)(void *userdata, const char *name,
                        unsigned int line); /* one begins; NULL: not wanted */
        void (*value)(void *userdata, const char *section, const char *name, const char *value,
                      unsigned int line);
        void (*fault)(void *userdata, const char *where, const char *what);
        void *userdata;
};

/* Says each fault of the file's form, and goes on. */
void ini_file_read(const char *name, const struct ini_sink *sink);

struct ini_place {
        char text[300];
};

/* FILE:LINE */
struct ini_place ini_place(const char *name, unsigned int line);
