/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"
#include "storage/sqlite/meta.h"

/* How thorough to be about SQLite's own structures. */
enum load_depth {
        LOAD_QUICK, /* all that could lead to a wrong row, now or later */
        LOAD_FULL,  /* all that SQLite can check */
};

/*
 * Gives everything to the sink, and makes sure that it is just what was committed. Changes nothing. Returns as
 * storage_load(); after a failure what was given counts for nothing.
 */
int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink,
                struct now now, enum load_depth depth, struct stored_meta *ret_meta);
