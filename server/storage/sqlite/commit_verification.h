/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "storage/sqlite/data_directory.h"

/*
 * Whether a commit that failed may still be complete in the write-ahead log, although SQLite has rolled it
 * back. After a crash SQLite would recover such a commit. Also returns true if this cannot be determined.
 *
 * Compares the log with its index (https://sqlite.org/walformat.html#the_wal_index_file_format), which
 * contains the number of frames that SQLite considers valid. db is the connection whose commit failed.
 */
bool commit_verification_run(sqlite3 *db, const struct directory *directory);
