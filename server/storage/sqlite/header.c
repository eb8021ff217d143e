/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/header.h"

#include "base/cleanup.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/checksum.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"

const char database_header_write_sql[] =
        "REPLACE INTO header (id, row_hash_key, checksum, record) VALUES (1, ?1, ?2, ?3)";

static uint64_t header_checksum(struct slice row_hash_key, struct slice record) {
        return checksum_add_bytes(checksum_add_bytes(0, row_hash_key), record);
}

int database_header_bind(sqlite3_stmt *statement, const struct database_header *header, struct buf *buf) {
        struct binder binder = { .statement = statement };
        struct slice row_hash_key = { header->row_hash_key.bytes, sizeof(header->row_hash_key) };

        buf_reset(buf);
        stored_header_append(buf, &header->state);
        if (buf_failed(buf))
                return SQLITE_NOMEM;
        binder_add_blob(&binder, row_hash_key);
        binder_add_number(&binder, (int64_t)header_checksum(row_hash_key, buf_slice(buf)));
        binder_add_blob(&binder, buf_slice(buf));
        return binder.code;
}

int database_header_write(sqlite3 *db, const struct database_header *header) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        CLEANUP(buf_deinit) struct buf buf = { 0 };
        int code;

        code = database_prepare(db, database_header_write_sql, &statement);
        if (code == SQLITE_OK)
                code = database_header_bind(statement, header, &buf);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        sqlite3_reset(statement); /* the buffer is freed before the statement */
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

int database_header_read(sqlite3 *db, struct database_header *ret_header) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;
        struct database_header header;
        struct slice row_hash_key, record;
        int code;

        code = database_prepare(db, "SELECT row_hash_key, checksum, record FROM header WHERE id = 1",
                                &statement);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? SQLITE_CORRUPT : code;

        row_hash_key = column_bytes(statement, 0);
        record = column_bytes(statement, 2);
        if (row_hash_key.length != sizeof(header.row_hash_key) ||
            header_checksum(row_hash_key, record) != (uint64_t)sqlite3_column_int64(statement, 1) ||
            stored_header_read(record, &header.state) < 0)
                return SQLITE_CORRUPT;
        memcpy(header.row_hash_key.bytes, row_hash_key.data, row_hash_key.length);
        *ret_header = header;
        return SQLITE_OK;
}
