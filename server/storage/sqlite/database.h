/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * Connections to the database, which differ in what they may do to it. SQLite itself writes to a database when it
 * opens or closes one that was not closed well; the connection to read with does not: whoever refuses a database
 * leaves every byte of it as it was.
 */

/* In the file's header: "Stat". */
#define DATABASE_APPLICATION_ID 0x53746174

#define DATABASE_PAGE_SIZE 4096

/* A backup, or somebody with the sqlite3 tool, may be at it for a moment. */
#define DATABASE_BUSY_TIMEOUT_MS 5000

/* For CLEANUP. */
static inline void cleanup_database(sqlite3 **db) {
        sqlite3_close(*db);
}
static inline void cleanup_statement(sqlite3_stmt **statement) {
        sqlite3_finalize(*statement);
}

/*
 * What can be told without SQLite: whether the file is one of ours, and whether its log is damaged. Returns 0,
 * -EBADMSG (logged), or what reading failed with.
 */
int database_examine(const struct directory *directory);

/* Each returns 0 or as database_errno(). The caller closes *ret_db. */
int database_open_to_read(sqlite3 **ret_db, const struct directory *directory);
int database_open_to_write(sqlite3 **ret_db, const struct directory *directory);

/* To read while another process has it open to write. */
int database_open_beside(sqlite3 **ret_db, const struct directory *directory);

/* Any file, as it is, for us alone: one that is being made. */
int database_open_file(sqlite3 **ret_db, const char *path);

/* Statements without results, or with results that nobody wants. Returns SQLite's code. */
int database_run(sqlite3 *db, const char *sql);

/* Compiles a statement that is kept. Returns SQLite's code. */
int database_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret_statement);

/* The first column of the first row, as a number. Returns SQLite's code. */
int database_read_number(sqlite3 *db, const char *sql, int64_t *ret_number);

/*
 * SQLite's code as an errno: -ENOSPC, -ENOMEM, -EBADMSG for a file that is not what it should be, -EBUSY, -EACCES, or
 * -EIO for all else. To be asked at once: what was wrong with a write, errno alone knows.
 */
int database_errno(int code);

/* Logs why the directory's file cannot be used, and that nothing was changed. Returns -EBADMSG. */
__attribute__((format(printf, 3, 4))) int database_refuse(const struct directory *directory,
                                                          const char *file, const char *format, ...);
