/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A file beside the database with the number of the last acknowledged commit. It is written after each
 * commit and before the replies are sent. It is not synced, so a commit costs one sync. After a crash the
 * file may be old, but it never contains too high a number. A database with fewer commits than the file says
 * has lost data: by damage at the end of the write-ahead log, which SQLite takes for an incomplete commit,
 * or because the log was removed.
 *
 * The file belongs to one database, identified by the instance id. A backup has an instance id of its own.
 */
struct commit_watermark {
        char instance_id[33];
        uint64_t n_commits;
};

/*
 * Read the file. Returns 0, -ENOENT if it is missing or malformed (the store starts without this check), or
 * -errno.
 */
int commit_watermark_read(int directory_fd, struct commit_watermark *ret_watermark);

/* Open the file for writing. Returns a descriptor or -errno. */
int commit_watermark_open(int directory_fd);

/* Write the file. Errors are ignored: the old content stays, and is still a valid lower bound. */
void commit_watermark_write(int fd, const struct commit_watermark *commit_watermark);
