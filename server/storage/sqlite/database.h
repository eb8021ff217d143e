/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * Connections to the database, read-only or read-write. If a database was not closed cleanly, SQLite writes to it when a
 * connection is opened and closed. The read-only connections below prevent these writes: a database that the store rejects is
 * not changed.
 */

/* Application id in the header of the file: "Stat". */
#define DATABASE_APPLICATION_ID 0x53746174

#define DATABASE_PAGE_SIZE 4096

/* The timeout for locking the database: a backup or the sqlite3 tool may have locked it briefly. */
#define DATABASE_BUSY_TIMEOUT_MS 5000

/* For CLEANUP. */
static inline void cleanup_database(sqlite3 **db) {
        sqlite3_close(*db);
}
static inline void cleanup_statement(sqlite3_stmt **statement) {
        sqlite3_finalize(*statement);
}

/* Check the header of the database for damage, without SQLite. Returns 0, -EBADMSG (logged), or the error of reading. */
int database_check_files(const struct directory *directory);

/* Open read-only or read-write. Each returns 0 or as database_errno(). database_open_to_read() logs -EBADMSG. The caller
 * closes *ret_db. */
int database_open_to_read(sqlite3 **ret_db, const struct directory *directory);
int database_open_to_write(sqlite3 **ret_db, const struct directory *directory);

/* Open read-only while another process has the database open read-write. Uses the index file (-shm) of that process. */
int database_open_beside(sqlite3 **ret_db, const struct directory *directory);

/* Open read-write a file that is not yet a database of a store: a new database or a backup. */
int database_open_file(sqlite3 **ret_db, const char *path);

/* Execute statements and discard their results. Returns an SQLite code. */
int database_run(sqlite3 *db, const char *sql);

/* Compile a statement that is used repeatedly. Returns an SQLite code. */
int database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement);

/* Read the first column of the first row as a number. Returns an SQLite code. */
int database_read_number(sqlite3 *db, const char *sql, int64_t *ret_number);

/*
 * Convert an SQLite code to an errno: -ENOSPC, -ENOMEM, -EBADMSG for a file that is damaged or is not an SQLite database,
 * -EBUSY, -EACCES, else -EIO. Call at once after the failure: for a failed write the function reads errno.
 */
int database_errno(int code);

/* Log why the file cannot be used, that nothing was changed, and the remedy. Returns -EBADMSG. */
__attribute__((format(printf, 3, 4))) int database_refuse(const struct directory *directory,
                                                          const char *file, const char *format, ...);
