/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * A note beside the database of the last commit that was acknowledged, written after that commit and before anyone
 * hears of it. It is not synced: a commit costs no second one for it. It may therefore be old, but it never says
 * too much: a database that holds less than it has lost something, be it to a flipped bit at the write-ahead log's
 * end, where SQLite takes damage for a commit that was cut off, or to someone who removed that file.
 *
 * It speaks of one database, by the instance id, which a backup has another of.
 */

struct commit_watermark {
        char instance_id[33];
        uint64_t n_commits;
};

/*
 * Reads the note. Returns 0, -ENOENT where there is none or what is there is none (it is a check, and no reason not
 * to start), or -errno.
 */
int commit_watermark_read(int directory_fd, struct commit_watermark *ret_watermark);

/* Opens it for writing. Returns a descriptor or -errno. */
int commit_watermark_open(int directory_fd);

/* Never fails: the old note stands where a new one cannot be written, and is true. */
void commit_watermark_write(int fd, const struct commit_watermark *commit_watermark);
