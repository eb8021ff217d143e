/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * The tables. Users may read entries with the sqlite3 tool: keys and values are TEXT if they are
 * UTF-8 without NUL, else BLOB; version_wall_ms is in milliseconds since the Unix epoch;
 * expires_at_ms is in milliseconds by the clock of timescale.h, which starts at Unix time and
 * ignores steps of the wall clock. The rows of the other tables are records of stored_form.h.
 *
 * A comparison in a B-tree reads all of the row that it compares, with its overflow pages. So each
 * table is ordered by an integer. An entry and a registration are found by a hash of their names:
 * rows.h. The names come before the value, because SQLite reads a row only up to the last column
 * that it needs.
 *
 * Each row has a checksum, because SQLite has none.
 */

/*
 * Raise it with each change of what is stored: a table, a column, a record of storage/stored_form.h,
 * or the name of an outcome that can be remembered. An older statestored then refuses the database
 * instead of calling it damaged. Versions 1 to 5 were never released.
 */
#define SCHEMA_VERSION 6

/*
 * Create the tables in an empty database, within the transaction of the caller. Returns an SQLite
 * code.
 */
int schema_create(sqlite3 *db);

enum schema {
        SCHEMA_CURRENT = 0,
        SCHEMA_NONE, /* the database is empty: it has just been created */
};

/*
 * Check that the database is of this schema, by application_id and user_version. Users may add
 * tables, views, indices and triggers. Returns an enum schema, -EBADMSG (logged) for another
 * database, or as database_errno().
 */
int schema_check(sqlite3 *db, const struct directory *directory);
