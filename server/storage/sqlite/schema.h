/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * The tables. Users may read them with the sqlite3 tool. Keys, values and clients are TEXT if they are UTF-8
 * without NUL, else BLOB. Times are in milliseconds since the Unix epoch, on the time scale of timescale.h.
 *
 * Each row has a checksum, because SQLite has none. The table meta has the sum of them all. So missing and
 * outdated rows are detected as well as damaged ones.
 */

#define SCHEMA_VERSION 1

/* Create the tables in an empty database, within the transaction of the caller. Returns an SQLite code. */
int schema_create(sqlite3 *db);

/* Returns 0, -EBADMSG (logged) for foreign tables or a newer version, or as database_errno(). */
int schema_check(sqlite3 *db, const struct directory *directory);
