/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "records/record.h"

/* Takes one record. now_ms: the wall clock. Returns EXIT_DONE, or what ends the import. */
typedef enum exit_code lines_function(void *userdata, const struct record *record, int64_t now_ms);

/*
 * Gives the records of a file, "-" for stdin, to take, less those whose deadline has passed, and says on stdout how many
 * there were. A line that cannot be read ends it, with EXIT_USAGE and the line's number.
 */
enum exit_code lines_import(const char *name, lines_function *take, void *userdata);
