/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/write.h"

#include <stdio.h>

#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"
#include "storage/stored_form.h"

static const char *const single_statements[WRITE_PUT] = {
        /*
         * IMMEDIATE takes the write lock at once: a busy database fails before any row is written.
         */
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        /* The first rows, so that a commit after a long time without one is not slow. */
        [WRITE_REMOVE_FORGOTTEN] = ("DELETE FROM replies WHERE number <= ?1 AND"
                                    " number < (SELECT min(number) FROM replies) + ?2"),
        [WRITE_REMOVE_ACKNOWLEDGED] = "DELETE FROM notifications WHERE number <= ?1",
        [WRITE_REMOVE_EXECUTIONS] = "DELETE FROM executions",
};

/* The tag of other names becomes NULL, so the statement fails: they have the same number. */
#define PUT_FORMAT                                                                                          \
        "INSERT INTO %s (" SCHEMA_COLUMNS ") VALUES (?1, ?2, ?3, ?4) ON CONFLICT (number)"                  \
        " DO UPDATE SET tag = CASE tag WHEN ?2 THEN ?2 END, checksum = ?3, content = ?4"
#define REMOVE_FORMAT "DELETE FROM %s WHERE number = ?1 AND tag = ?2"

/* Compile the statement for one table. */
static int prepare_for_table(struct sqlite_writer *writer, sqlite3 *db, const char *format, size_t which,
                             const char *table) {
        char sql[256];

        snprintf(sql, sizeof(sql), format, table);
        return database_prepare(db, sql, &writer->statements[which]);
}

int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db) {
        int code = SQLITE_OK;

        *writer = (struct sqlite_writer){ 0 };
        for (size_t i = 0; i < WRITE_PUT && code == SQLITE_OK; i++)
                code = database_prepare(db, single_statements[i], &writer->statements[i]);
        for (size_t i = 0; i < N_SCHEMA_TABLES && code == SQLITE_OK; i++) {
                code = prepare_for_table(writer, db, PUT_FORMAT, WRITE_PUT + i, schema_tables[i]);
                if (code == SQLITE_OK)
                        code = prepare_for_table(writer, db, REMOVE_FORMAT, WRITE_REMOVE + i,
                                                 schema_tables[i]);
        }
        return code;
}

void sqlite_writer_deinit(struct sqlite_writer *writer) {
        for (size_t i = 0; i < N_WRITE_STATEMENTS; i++)
                sqlite3_finalize(writer->statements[i]);
        buf_deinit(&writer->content);
        *writer = (struct sqlite_writer){ 0 };
}

int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which) {
        int code = sqlite3_step(writer->statements[which]);

        sqlite3_reset(writer->statements[which]);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Put the content that is in the buffer. */
static int put_content(struct sqlite_writer *writer, size_t table, struct row_place place) {
        enum write_statement which = (enum write_statement)(WRITE_PUT + table);
        int code = buf_failed(&writer->content)
                           ? SQLITE_NOMEM
                           : row_bind(writer->statements[which], place, buf_slice(&writer->content));

        return code == SQLITE_OK ? sqlite_writer_run(writer, which) : code;
}

/* Bind these numbers, and execute the statement. */
static int run_with_numbers(struct sqlite_writer *writer, enum write_statement which, uint64_t first,
                            uint64_t second) {
        sqlite3_stmt *statement = writer->statements[which];
        int code = sqlite3_bind_int64(statement, 1, (int64_t)first);

        if (code == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 1)
                code = sqlite3_bind_int64(statement, 2, (int64_t)second);
        return code == SQLITE_OK ? sqlite_writer_run(writer, which) : code;
}

static int put_or_remove_row(struct sqlite_writer *writer, const struct row *row,
                             const struct hash_key *hash_key) {
        struct row_place place = row_place_of(row, hash_key);

        if (row->is_removed)
                return run_with_numbers(writer, WRITE_REMOVE + row->type, place.number, place.tag);

        buf_reset(&writer->content);
        stored_row_append(&writer->content, row);
        return put_content(writer, row->type, place);
}

int sqlite_writer_put(struct sqlite_writer *writer, const struct change_set *change_set) {
        int code;

        code = run_with_numbers(writer, WRITE_REMOVE_ACKNOWLEDGED, change_set->acknowledged, 0);
        /* Remove more replies than the change set adds, so that their number does not grow. */
        if (code == SQLITE_OK)
                code = run_with_numbers(writer, WRITE_REMOVE_FORGOTTEN, change_set->forgotten_up_to,
                                        1000 + 2 * (uint64_t)change_set->n_rows);
        if (code == SQLITE_OK && change_set->forgets_executions)
                code = sqlite_writer_run(writer, WRITE_REMOVE_EXECUTIONS);
        for (size_t i = 0; i < change_set->n_rows && code == SQLITE_OK; i++)
                code = put_or_remove_row(writer, &change_set->rows[i], &change_set->header.row_hash_key);
        if (code != SQLITE_OK)
                return code;

        buf_reset(&writer->content);
        stored_header_append(&writer->content, &change_set->header);
        return put_content(writer, SCHEMA_HEADER, ROW_PLACE_HEADER);
}
