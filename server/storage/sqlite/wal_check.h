/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Checks an SQLite write-ahead log for damage (https://sqlite.org/fileformat2.html#walformat). SQLite takes
 * the first invalid frame for the end of the log. That is right after a power failure. After damage it would
 * silently drop the acknowledged commits that follow.
 *
 * The two cases differ: frames of a transaction are written only after the previous transaction was synced.
 * Suppose that a frame is invalid, and that a frame of a later transaction continues the checksum of a
 * commit at or after the invalid frame. Then that commit had been synced completely, so the log is damaged.
 * Damage in the last transaction is not detected here; see commit_watermark.h.
 */

struct wal_summary {
        uint8_t salts[8]; /* of the current generation of the log, which SQLite overwrites from its start */
        uint32_t n_committed;    /* frames up to the last complete commit */
        uint64_t damaged_offset; /* with WAL_DAMAGED: offset of the damage in bytes */
};

enum wal_result {
        WAL_SOUND = 0, /* also if the log is empty or its end is truncated */
        WAL_DAMAGED,
};

/* fd: the log. page_size: of the database. Returns a wal_result, -ENOMEM, or the error of reading. */
int wal_check(int fd, uint32_t page_size, struct wal_summary *ret_summary);
