/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/stored_form.h"

/* The only row of the table header. Each commit replaces it. */
struct database_header {
        struct state_header state;
        struct hash_key row_hash_key; /* see rows.h; random, never changes */
};

/* A statement that writes the row. */
extern const char database_header_write_sql[];

/*
 * Bind the parameters of database_header_write_sql. The record is made in buf, and borrowed.
 * Returns an SQLite code.
 */
int database_header_bind(sqlite3_stmt *statement, const struct database_header *header, struct buf *buf);

/* Write the row. Returns an SQLite code. */
int database_header_write(sqlite3 *db, const struct database_header *header);

/* Returns an SQLite code; SQLITE_CORRUPT if the row is missing or damaged. */
int database_header_read(sqlite3 *db, struct database_header *ret_header);
