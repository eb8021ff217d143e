/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * The tables. Users may read them with the sqlite3 tool. Keys, values and clients are TEXT if they are UTF-8 without NUL, else
 * BLOB. Times are in milliseconds: version_wall_ms since the Unix epoch, expires_at_ms and forget_at_ms by the clock of
 * timescale.h, which starts at Unix time and ignores steps of the wall clock.
 *
 * A comparison in a B-tree reads all of the row that it compares, with its overflow pages. So each table is ordered by an
 * integer. An entry and a registration are found by a hash of their names: rows.h. The names are in the row, and come before the
 * value, because SQLite reads a row only up to the last column that it needs.
 *
 * Each row has a checksum, because SQLite has none. The table meta has one checksum for all its rows.
 */

/* Versions 1 and 2 were never released. */
#define SCHEMA_VERSION 3

/* Create the tables in an empty database, within the transaction of the caller. Returns an SQLite code. */
int schema_create(sqlite3 *db);

enum schema {
        SCHEMA_CURRENT = 0,
        SCHEMA_NONE, /* the database is empty: it has just been created */
};

/*
 * Check that the database is of this schema, by application_id and user_version. Users may add tables, views, indices and
 * triggers. Returns an enum schema, -EBADMSG (logged) for another database, or as database_errno().
 */
int schema_check(sqlite3 *db, const struct directory *directory);
