/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Reads an SQLite write-ahead log for itself (https://sqlite.org/fileformat2.html#walformat). SQLite takes the
 * first frame that is not whole for the end, which is right after a power cut and wrong after damage: what was
 * acknowledged behind it would be gone without a word.
 *
 * What tells them apart: a transaction's frames are written after the one before it was synced. So where a frame
 * is broken and a frame of a later transaction is there, which carries on the checksum of a commit at or behind the
 * broken one, that commit had been synced whole: it is damage. What is broken in the last transaction of all does
 * not show here; see acknowledged.h.
 */

struct wal_summary {
        uint8_t salts[8]; /* of the log's present use; it is written over from its start again and again */
        uint32_t n_committed;    /* frames up to the last commit that is whole */
        uint64_t damaged_offset; /* with WAL_DAMAGED: where */
};

enum wal_result {
        WAL_SOUND = 0, /* also when it is empty, or its end is cut off */
        WAL_DAMAGED,
};

/* fd: the log; page_size: the database's. Returns a wal_result, -ENOMEM, or what reading failed with. */
int wal_check(int fd, uint32_t page_size, struct wal_summary *ret_summary);
