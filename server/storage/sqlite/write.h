/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "state/change_set.h"
#include "storage/sqlite/schema.h"

/* Writes a change set within a transaction. The caller begins and ends the transaction. */

enum write_statement {
        WRITE_BEGIN,
        WRITE_COMMIT,
        WRITE_ROLLBACK,
        WRITE_REMOVE_FORGOTTEN,
        WRITE_REMOVE_ACKNOWLEDGED,
        WRITE_REMOVE_EXECUTIONS,
        WRITE_PUT,                                  /* a row; the first of the tables */
        WRITE_REMOVE = WRITE_PUT + N_SCHEMA_TABLES, /* likewise */
        N_WRITE_STATEMENTS = WRITE_REMOVE + N_SCHEMA_TABLES,
};

struct sqlite_writer {
        sqlite3_stmt *statements[N_WRITE_STATEMENTS];
        struct buf content; /* of the present row */
};

/*
 * Compile the statements. Returns an SQLite code; the caller must call sqlite_writer_deinit() in
 * any case.
 */
int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db);

/* Accepts a structure of zeros. Does not close the connection. */
void sqlite_writer_deinit(struct sqlite_writer *writer);

/*
 * Execute a statement that returns no rows. The caller has bound its parameters. Returns an SQLite
 * code.
 */
int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which);

/* Write the changes and the header. Returns an SQLite code. */
int sqlite_writer_put(struct sqlite_writer *writer, const struct change_set *change_set);
