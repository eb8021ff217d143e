/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/* Connections to the database, and errors of SQLite. */

/* Application id in the header of the file: "Stat". */
#define DATABASE_APPLICATION_ID 0x53746174

/* The timeout for locking the database: a backup or the sqlite3 tool may have locked it briefly. */
#define DATABASE_BUSY_TIMEOUT_MS 5000

/* For CLEANUP. */
static inline void cleanup_database(sqlite3 **db) {
        sqlite3_close(*db);
}
static inline void cleanup_statement(sqlite3_stmt **statement) {
        sqlite3_finalize(*statement);
}

/*
 * Open an existing file, without reading it. The connection keeps the write-ahead log. Returns 0 or
 * as database_errno(). The caller closes *ret_db.
 */
int database_open(sqlite3 **ret_db, const char *path);

/*
 * As database_open(), but for reading, and without creating a file beside the database. No process
 * may write the database while it is open: the caller holds the lock of its directory, or it is a
 * copy. For a file system that is read-only or full: SQLite creates an index of the log otherwise.
 */
int database_open_to_read(sqlite3 **ret_db, const char *path);

/*
 * Keep the write-ahead log when the connection is closed. Otherwise SQLite copies the log into the
 * database and removes it. Keep the log of a database that may be damaged: the log may have commits
 * that SQLite does not see behind the damage.
 */
void database_keep_log(sqlite3 *db, bool is_kept);

/* Execute statements and discard their results. Returns an SQLite code. */
int database_run(sqlite3 *db, const char *sql);

/* Compile a statement that is used repeatedly. Returns an SQLite code. */
int database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement);

/* Read the first column of the first row as a number. Returns an SQLite code. */
int database_read_number(sqlite3 *db, const char *sql, int64_t *ret_number);

/*
 * Convert an SQLite code to an errno: -ENOSPC, -ENOMEM, -EBADMSG for a file that is damaged or is
 * not a database of a store, -EBUSY, -EACCES, else -EIO. Call at once after the failure: for a
 * failed write the function reads errno.
 */
int database_errno(int code);

/* Log why the database cannot be used, and advise to restore a backup. Returns -EBADMSG. */
__attribute__((format(printf, 2, 3))) int database_refuse(const struct directory *directory,
                                                          const char *format, ...);
