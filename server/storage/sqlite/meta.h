/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/storage.h"

/* The content of the table meta. Each commit writes the whole table. */
struct stored_meta {
        struct storage_header header;
        struct hash_key row_hash_key; /* see rows.h; random, never changes */
        int64_t reading_ms; /* reading of the timescale at the last commit, see storage/timescale.h */
        int64_t shift_ms;   /* shift of the timescale at the last commit */
        uint64_t n_commits;
};

/* A statement that writes the table. */
extern const char stored_meta_write_sql[];

/* Bind the parameters of stored_meta_write_sql; *meta is borrowed. Returns an SQLite code. */
int stored_meta_bind(sqlite3_stmt *statement, const struct stored_meta *meta);

/* Write the table. Returns an SQLite code. */
int stored_meta_write(sqlite3 *db, const struct stored_meta *meta);

/* Returns an SQLite code; SQLITE_CORRUPT if the content is inconsistent. */
int stored_meta_read(sqlite3 *db, struct stored_meta *ret_meta);
