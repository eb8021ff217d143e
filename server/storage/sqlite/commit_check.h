/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/sqlite/data_directory.h"

/*
 * Two checks of commits. When the store starts, the commit watermark shows whether the database lacks commits. After a failed
 * commit, failed_commit_may_be_durable() returns whether that commit may survive a crash.
 */

/*
 * The commit watermark is a file beside the database (DIRECTORY_COMMIT_WATERMARK) with the number of the last acknowledged
 * commit. The store writes the file after each commit and before the replies are sent. The store syncs the file only when it
 * closes the storage: a commit needs only the sync of the write-ahead log. After a crash the number in the file may be too low,
 * but never too high.
 *
 * A database with fewer commits than the watermark lacks acknowledged commits: the write-ahead log was removed, its end is
 * damaged, or an older copy of the database was put back. SQLite reports no error for a damaged end: it looks like an
 * incomplete commit.
 *
 * The file belongs to the database with the same instance id. A backup has a different instance id.
 */
struct commit_watermark {
        char instance_id[33];
        uint64_t n_commits;
};

/* Read the file. Returns 0, -ENOENT if it is missing or malformed (the store starts without this check), or -errno. */
int commit_watermark_read(int directory_fd, struct commit_watermark *ret_watermark);

/* Open the file for writing. Returns a descriptor or -errno. */
int commit_watermark_open(int directory_fd);

/* Write the file. Errors are ignored: the old content stays, and is still a valid lower bound. */
void commit_watermark_write(int fd, const struct commit_watermark *commit_watermark);

/*
 * Return true if the write-ahead log may contain all of a commit that failed, although SQLite has rolled it back: after a crash
 * SQLite would recover such a commit. Also returns true if this cannot be determined.
 *
 * Compares the log with its index (https://sqlite.org/walformat.html#the_wal_index_file_format), which contains the number of
 * frames that SQLite considers valid. db is the connection whose commit failed.
 */
bool failed_commit_may_be_durable(sqlite3 *db, const struct directory *directory);
