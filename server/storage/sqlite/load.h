/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"
#include "storage/storage.h"

/*
 * Pass everything to the sink, and check for damage: load.c lists the checks. Changes
 * nothing. Returns as storage_load(). After an error the caller must discard what the sink received.
 */
int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink);

/* Read the header. Returns an SQLite code; SQLITE_CORRUPT if it is missing or damaged. */
int sqlite_load_header(sqlite3 *db, struct state_header *ret_header);
