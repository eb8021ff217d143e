/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/write.h"

#include "protocol/hlc.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"

static const char *const statements_sql[] = {
        /* IMMEDIATE takes the write lock at once: a busy database fails before any row is written. */
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_META] = stored_meta_write_sql,
        [WRITE_FIND_ENTRY] = "SELECT checksum FROM entries WHERE key = ?1",
        [WRITE_PUT_ENTRY] =
                "REPLACE INTO entries (" STORED_ENTRY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        [WRITE_REMOVE_ENTRY] = "DELETE FROM entries WHERE key = ?1",
        [WRITE_FIND_REGISTRATION] = "SELECT checksum FROM registrations WHERE client = ?1 AND key = ?2",
        [WRITE_PUT_REGISTRATION] =
                "REPLACE INTO registrations (" STORED_REGISTRATION_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5)",
        [WRITE_REMOVE_REGISTRATION] = "DELETE FROM registrations WHERE client = ?1 AND key = ?2",
        [WRITE_FIND_ANSWER] = "SELECT checksum FROM answers WHERE slot = ?1",
        [WRITE_PUT_ANSWER] =
                "REPLACE INTO answers (" STORED_ANSWER_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
};
_Static_assert(sizeof(statements_sql) / sizeof(statements_sql[0]) == N_WRITE_STATEMENTS,
               "each statement has SQL");

int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db, struct timescale timescale) {
        int code = SQLITE_OK;

        *writer = (struct sqlite_writer){ .db = db, .timescale = timescale };
        for (size_t i = 0; i < N_WRITE_STATEMENTS && code == SQLITE_OK; i++)
                code = database_prepare(db, statements_sql[i], &writer->statements[i]);
        return code;
}

void sqlite_writer_deinit(struct sqlite_writer *writer) {
        for (size_t i = 0; i < N_WRITE_STATEMENTS; i++)
                sqlite3_finalize(writer->statements[i]);
        buf_deinit(&writer->client);
        buf_deinit(&writer->key);
        buf_deinit(&writer->fence);
        *writer = (struct sqlite_writer){ 0 };
}

static int run(sqlite3_stmt *statement) {
        int code = sqlite3_step(statement);

        sqlite3_reset(statement);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which) {
        return run(writer->statements[which]);
}

/* Subtract the checksum of the row that is replaced, if any. */
static int subtract_found(sqlite3_stmt *statement, struct stored_meta *meta) {
        int code = sqlite3_step(statement);

        if (code == SQLITE_ROW)
                meta->rows_checksum -= (uint64_t)sqlite3_column_int64(statement, 0);
        sqlite3_reset(statement);
        return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static bool is_stored(const struct entry *entry) {
        return entry && entry->is_persistent;
}

static int make_stored_entry(struct sqlite_writer *writer, const struct row *row,
                             struct stored_entry *ret_stored) {
        const struct entry *entry = row->entry.after;
        struct stored_entry stored = {
                .key = entry_key(entry),
                .value = entry_value(entry),
                .version = entry_version(entry),
        };
        struct hlc fence;

        stored_entry_set_types(&stored);
        if (row->entry.after_deadline_ns != STORE_NEVER) {
                stored.expires = true;
                stored.expires_at_ms =
                        timescale_from_deadline(writer->timescale, row->entry.after_deadline_ns);
        }
        if (entry_fence(entry, &fence)) {
                buf_reset(&writer->fence);
                hlc_append(&writer->fence, fence, HLC_PADDED);
                if (buf_failed(&writer->fence))
                        return SQLITE_NOMEM;
                stored.fence = buf_slice(&writer->fence);
        }

        *ret_stored = stored;
        return SQLITE_OK;
}

static int put_entry(struct sqlite_writer *writer, const struct row *row, struct stored_meta *meta) {
        sqlite3_stmt *find = writer->statements[WRITE_FIND_ENTRY];
        sqlite3_stmt *put = writer->statements[WRITE_PUT_ENTRY];
        struct stored_entry stored;
        int code;

        code = make_stored_entry(writer, row, &stored);
        if (code == SQLITE_OK)
                code = stored_bytes_bind(find, 1, stored.key);
        if (code == SQLITE_OK)
                code = subtract_found(find, meta);
        if (code == SQLITE_OK)
                code = stored_entry_bind(put, &stored);
        if (code == SQLITE_OK)
                code = run(put);
        if (code == SQLITE_OK)
                meta->rows_checksum += stored_entry_checksum(&stored);
        return code;
}

static int remove_entry(struct sqlite_writer *writer, const struct entry *entry, struct stored_meta *meta) {
        sqlite3_stmt *find = writer->statements[WRITE_FIND_ENTRY];
        sqlite3_stmt *remove = writer->statements[WRITE_REMOVE_ENTRY];
        int code;

        code = stored_bytes_bind(find, 1, entry_key(entry));
        if (code == SQLITE_OK)
                code = subtract_found(find, meta);
        if (code == SQLITE_OK)
                code = stored_bytes_bind(remove, 1, entry_key(entry));
        return code == SQLITE_OK ? run(remove) : code;
}

static int write_entry(struct sqlite_writer *writer, const struct row *row, struct stored_meta *meta) {
        if (is_stored(row->entry.after))
                return put_entry(writer, row, meta);
        if (is_stored(row->entry.before))
                return remove_entry(writer, row->entry.before, meta);
        return SQLITE_OK;
}

static int bind_names(sqlite3_stmt *statement, const struct stored_registration *stored) {
        int code = stored_bytes_bind(statement, 1, stored->client);

        return code == SQLITE_OK ? stored_bytes_bind(statement, 2, stored->key) : code;
}

static int write_registration(struct sqlite_writer *writer, const struct row *row,
                              struct stored_meta *meta) {
        const struct registration *registration = row->registration.registration;
        bool is_added = row->registration.is_added;
        sqlite3_stmt *find = writer->statements[WRITE_FIND_REGISTRATION];
        sqlite3_stmt *change =
                writer->statements[is_added ? WRITE_PUT_REGISTRATION : WRITE_REMOVE_REGISTRATION];
        struct stored_registration stored = { .connection = registration->connection,
                                              .user = registration->user };
        int code;

        buf_reset(&writer->client);
        buf_reset(&writer->key);
        registration_names(registration, &writer->client, &writer->key);
        if (buf_failed(&writer->client) || buf_failed(&writer->key))
                return SQLITE_NOMEM;
        stored.client = buf_slice(&writer->client);
        stored.key = buf_slice(&writer->key);

        code = bind_names(find, &stored);
        if (code == SQLITE_OK)
                code = subtract_found(find, meta);
        if (code == SQLITE_OK)
                code = is_added ? stored_registration_bind(change, &stored) : bind_names(change, &stored);
        if (code == SQLITE_OK)
                code = run(change);
        if (code == SQLITE_OK && is_added)
                meta->rows_checksum += stored_registration_checksum(&stored);
        return code;
}

static int write_answer(struct sqlite_writer *writer, const struct row *row, struct stored_meta *meta) {
        sqlite3_stmt *find = writer->statements[WRITE_FIND_ANSWER];
        sqlite3_stmt *put = writer->statements[WRITE_PUT_ANSWER];
        struct stored_answer stored = {
                .slot = row->answer.slot,
                .digest = row->answer.digest,
                .answer = row->answer.answer,
                .forget_at_ms = timescale_from_deadline(writer->timescale, row->answer.deadline_ns),
        };
        int code;

        code = sqlite3_bind_int64(find, 1, stored.slot);
        if (code == SQLITE_OK)
                code = subtract_found(find, meta);
        if (code == SQLITE_OK)
                code = stored_answer_bind(put, &stored);
        if (code == SQLITE_OK)
                code = run(put);
        if (code == SQLITE_OK)
                meta->rows_checksum += stored_answer_checksum(&stored);
        return code;
}

static int write_row(struct sqlite_writer *writer, const struct row *row, struct stored_meta *meta) {
        switch (row->type) {
        case ROW_ENTRY:
                return write_entry(writer, row, meta);
        case ROW_REGISTRATION:
                return write_registration(writer, row, meta);
        case ROW_ANSWER:
                return write_answer(writer, row, meta);
        }
        return SQLITE_MISUSE;
}

int sqlite_writer_put(struct sqlite_writer *writer, const struct storage_batch *batch,
                      struct stored_meta *meta) {
        int code = SQLITE_OK;

        for (size_t i = 0; i < batch->n_rows && code == SQLITE_OK; i++)
                code = write_row(writer, &batch->rows[i], meta);
        if (code == SQLITE_OK)
                code = stored_meta_bind(writer->statements[WRITE_META], meta);
        return code == SQLITE_OK ? run(writer->statements[WRITE_META]) : code;
}
