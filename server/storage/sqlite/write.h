/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/meta.h"
#include "storage/timescale.h"

/* Puts a batch into a transaction that the caller begins and ends. */

enum write_statement {
        WRITE_BEGIN,
        WRITE_COMMIT,
        WRITE_ROLLBACK,
        WRITE_META,
        WRITE_FIND_ENTRY,
        WRITE_PUT_ENTRY,
        WRITE_REMOVE_ENTRY,
        WRITE_FIND_REGISTRATION,
        WRITE_PUT_REGISTRATION,
        WRITE_REMOVE_REGISTRATION,
        WRITE_FIND_ANSWER,
        WRITE_PUT_ANSWER,
        N_WRITE_STATEMENTS,
};

struct sqlite_writer {
        sqlite3 *db;
        sqlite3_stmt *statements[N_WRITE_STATEMENTS];
        struct timescale timescale;
        struct buf client, key, fence; /* of the row in hand */
};

/* Compiles the statements. Returns SQLite's code; writer must be deinitialised in any case. */
int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db, struct timescale timescale);

/* Accepts one that is all zeros. The connection is not the writer's. */
void sqlite_writer_deinit(struct sqlite_writer *writer);

/* A statement without parameters or results. Returns SQLite's code. */
int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which);

/* Writes the rows and *meta; its sum of checksums becomes what it is with the rows. Returns SQLite's code. */
int sqlite_writer_put(struct sqlite_writer *writer, const struct storage_batch *batch,
                      struct stored_meta *meta);
