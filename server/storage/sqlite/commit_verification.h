/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "storage/sqlite/data_directory.h"

/*
 * Whether a commit that failed, and that SQLite has rolled back, stands in the log all the same: whole, with its end,
 * so that it would come back after a crash. It does where something failed behind its last write; where that write
 * failed half-way, and what it left out was there already; or where this cannot be told.
 *
 * Compares the log with its index (https://sqlite.org/walformat.html#the_wal_index_file_format), which says how
 * much of it counts for SQLite. db is the connection that failed.
 */
bool commit_verification_run(sqlite3 *db, const struct directory *directory);
