/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"
#include "storage/sqlite/meta.h"

/* How thoroughly to check the structures of SQLite. */
enum load_depth {
        LOAD_QUICK, /* PRAGMA quick_check: everything that could lead to a wrong row */
        LOAD_FULL,  /* PRAGMA integrity_check: everything that SQLite can check */
};

struct load_result {
        struct stored_meta meta;
        struct storage_census census;
};

/*
 * Pass everything to the sink, and verify that the database contains exactly what was committed: load.c lists
 * the checks. sink NULL: only verify and count. Changes nothing. Returns as storage_load(). After an error the caller
 * must discard what the sink received.
 */
int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink,
                struct now now, enum load_depth depth, struct load_result *ret_result);
