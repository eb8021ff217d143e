/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state/header.h"
#include "storage/sqlite/data_directory.h"

/*
 * The commit watermark is a file beside the database (DIRECTORY_COMMIT_WATERMARK) with the number
 * of the last acknowledged commit. The store writes the file after each commit and before the
 * replies are sent. The store syncs the file only when it closes the storage: a commit needs only
 * the sync of the write-ahead log. After a crash the number in the file may be too low, but never
 * too high.
 *
 * A database with fewer commits than the watermark lacks acknowledged commits: the write-ahead log
 * was removed or is damaged, or an older copy of the database was put back. SQLite reports no error
 * for a damaged log: the log ends at the damage as at an incomplete commit.
 *
 * The file belongs to the database with the same instance id. A backup has a different instance id.
 */

/*
 * Read instance_id and n_commits of the header that was acknowledged last. The other fields are 0.
 * Returns 0, -ENOENT if the file is missing or malformed (the store starts without this check), or
 * -errno.
 */
int commit_watermark_read(int directory_fd, struct state_header *ret_acknowledged);

/*
 * Write the file. fd: from directory_open_file(), or its error. Errors are ignored: the old content
 * stays, and is still a valid lower bound.
 */
void commit_watermark_write(int fd, const struct state_header *header);
