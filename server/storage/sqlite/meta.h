/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/storage.h"

/* What meta holds, as a whole: each commit writes it. */
struct stored_meta {
        struct storage_header header;
        int64_t reading_ms; /* of the timescale, at the last commit */
        int64_t shift_ms;
        uint64_t n_commits;
        uint64_t rows_checksum; /* the sum of all rows' */
};

extern const char stored_meta_write_sql[];

int stored_meta_bind(sqlite3_stmt *statement, const struct stored_meta *meta);

/* Returns SQLite's code, SQLITE_CORRUPT where what is there does not fit together. */
int stored_meta_read(sqlite3 *db, struct stored_meta *ret_meta);
