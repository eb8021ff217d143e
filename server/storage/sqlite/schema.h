/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "state/change_set.h"
#include "storage/sqlite/data_directory.h"

/*
 * The tables: one for each type of row (state/change_set.h), and one for the header. All have the
 * same columns: number and tag, where the row is (rows.h), a checksum, because SQLite has none, and a
 * form of storage/stored_form.h.
 *
 * A comparison in a B-tree reads all of the row that it compares, with its overflow pages. So each
 * table is ordered by an integer. The content is the last column, because SQLite reads a row only up
 * to the last column that it needs.
 */
#define SCHEMA_HEADER   N_ROW_TYPES
#define N_SCHEMA_TABLES (N_ROW_TYPES + 1)

/* The name of the table of each type of row, and at SCHEMA_HEADER that of the header. */
extern const char *const schema_tables[N_SCHEMA_TABLES];

#define SCHEMA_COLUMNS "number, tag, checksum, content"

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
 * Check that statestored wrote the database in the present form, by application_id and user_version, which
 * is STORED_FORM_VERSION. Users may add tables, views, indices and triggers. Returns an enum schema,
 * -EBADMSG (logged) for another database, or as database_errno().
 */
int schema_check(sqlite3 *db, const struct directory *directory);
