/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Check an SQLite write-ahead log for damage (https://sqlite.org/fileformat2.html#walformat). SQLite treats the first invalid
 * frame as the end of the log. After a power failure that is correct: the frame was not written completely. If the frame was
 * damaged later, SQLite would silently drop the acknowledged commits after it.
 *
 * wal_check() distinguishes the two cases. The store writes a transaction only after the sync of the previous one. If the log
 * contains a transaction after that of the invalid frame, the invalid frame was synced, and was damaged later. wal_check()
 * searches for two adjacent frames at or after the invalid frame:
 *
 *  1. the last frame of a transaction;
 *  2. the first frame of the next transaction. Its checksum must follow from the checksum of frame 1, because the
 *     checksums are cumulative.
 *
 * Damage in the header of the log or in the last transaction is not detected here; see commit_check.h.
 */

struct wal_summary {
        uint8_t salts[8];        /* of the log; SQLite changes them when it restarts the log */
        uint32_t n_committed;    /* frames up to the last complete commit */
        uint64_t damaged_offset; /* with WAL_DAMAGED: offset of the damage in bytes */
};

enum wal_result {
        WAL_SOUND = 0, /* also if the log is empty, its header is invalid, or its end is truncated */
        WAL_DAMAGED,
};

/* fd: the log. page_size: of the database. Returns a wal_result, -ENOMEM, or the error of reading. */
int wal_check(int fd, uint32_t page_size, struct wal_summary *ret_summary);
