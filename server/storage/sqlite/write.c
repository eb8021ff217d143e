/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/write.h"

#include "base/array.h"
#include "protocol/hlc.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"

static const char *const statements_sql[] = {
        /*
         * IMMEDIATE takes the write lock at once: a busy database fails before any row is written.
         */
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_HEADER] = "REPLACE INTO header (number, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_UPDATE_ENTRY] = "UPDATE entries"
                               " SET version_wall_ms = ?3, version_counter = ?4, expires_at_ms = ?5,"
                               " fence = ?6, checksum = ?7, value = ?8 WHERE hash = ?1 AND key = ?2",
        [WRITE_INSERT_ENTRY] =
                "INSERT INTO entries (" ENTRY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [WRITE_REMOVE_ENTRY] = "DELETE FROM entries WHERE hash = ?1",
        [WRITE_INSERT_REGISTRATION] =
                "INSERT INTO registrations (hash, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_REGISTRATION] = "DELETE FROM registrations"
                                      " WHERE hash = ?1 AND substr(record, 1, length(?2)) = ?2",
        [WRITE_PUT_REPLY] = "REPLACE INTO replies (number, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_REPLY] = "DELETE FROM replies WHERE number = ?1",
        /* The first rows, so that a commit after a long time without one is not slow. */
        [WRITE_REMOVE_FORGOTTEN] = "DELETE FROM replies WHERE number <= ?1 AND"
                                   " number < (SELECT min(number) FROM replies) + ?2",
        [WRITE_PUT_EXECUTION] = "REPLACE INTO executions (place, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_PUT_NOTIFICATION] =
                "INSERT INTO notifications (sequence, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_NOTIFICATIONS] = "DELETE FROM notifications WHERE sequence <= ?1",
};
_Static_assert(ARRAY_LENGTH(statements_sql) == N_WRITE_STATEMENTS, "each statement has SQL");

int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db) {
        int code = SQLITE_OK;

        *writer = (struct sqlite_writer){ 0 };
        for (size_t i = 0; i < N_WRITE_STATEMENTS && code == SQLITE_OK; i++)
                code = database_prepare(db, statements_sql[i], &writer->statements[i]);
        return code;
}

void sqlite_writer_deinit(struct sqlite_writer *writer) {
        for (size_t i = 0; i < N_WRITE_STATEMENTS; i++)
                sqlite3_finalize(writer->statements[i]);
        buf_deinit(&writer->record);
        *writer = (struct sqlite_writer){ 0 };
}

int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which) {
        int code = sqlite3_step(writer->statements[which]);

        sqlite3_reset(writer->statements[which]);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Bind the record that is in the buffer, and execute the statement. */
static int put_record(struct sqlite_writer *writer, enum write_statement which, uint64_t number) {
        int code = buf_failed(&writer->record)
                           ? SQLITE_NOMEM
                           : record_bind(writer->statements[which], number, buf_slice(&writer->record));

        return code == SQLITE_OK ? sqlite_writer_run(writer, which) : code;
}

static int remove_registration(struct sqlite_writer *writer, uint64_t hash,
                               const struct registration_change *change) {
        struct binder binder = { .statement = writer->statements[WRITE_REMOVE_REGISTRATION] };

        buf_reset(&writer->record);
        stored_registration_append_names(&writer->record, change->client, change->key);
        if (buf_failed(&writer->record))
                return SQLITE_NOMEM;
        binder_add_number(&binder, (int64_t)hash);
        binder_add_blob(&binder, buf_slice(&writer->record));
        return binder.code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_REGISTRATION) : binder.code;
}

/* An added registration replaces the one with the same names, if there is one. */
static int write_registration(struct sqlite_writer *writer, const struct registration_change *change) {
        uint64_t hash = row_hash_of_names(&writer->row_hash_key, change->client, change->key);
        int code;

        code = remove_registration(writer, hash, change);
        if (code != SQLITE_OK || change->is_removed)
                return code;
        buf_reset(&writer->record);
        stored_registration_append(&writer->record, change);
        return put_record(writer, WRITE_INSERT_REGISTRATION, hash);
}

static int write_reply(struct sqlite_writer *writer, const struct reply_change *change) {
        buf_reset(&writer->record);
        stored_reply_append(&writer->record, change);
        return put_record(writer, WRITE_PUT_REPLY, change->number);
}

static int write_execution(struct sqlite_writer *writer, const struct execution_row *row) {
        buf_reset(&writer->record);
        stored_execution_append(&writer->record, row);
        return put_record(writer, WRITE_PUT_EXECUTION, row->place);
}

static int write_notification(struct sqlite_writer *writer, const struct pending_notification *change) {
        buf_reset(&writer->record);
        stored_notification_append(&writer->record, change);
        return put_record(writer, WRITE_PUT_NOTIFICATION, change->sequence);
}

/* Remove the row with this number or hash, or the rows up to it. */
static int remove_numbered(struct sqlite_writer *writer, enum write_statement which, uint64_t number) {
        int code = sqlite3_bind_int64(writer->statements[which], 1, (int64_t)number);

        return code == SQLITE_OK ? sqlite_writer_run(writer, which) : code;
}

static int write_entry(struct sqlite_writer *writer, const struct entry_change *change) {
        sqlite3_stmt *update = writer->statements[WRITE_UPDATE_ENTRY];
        uint64_t hash = row_hash_of_key(&writer->row_hash_key, change->key);
        struct slice fence = { 0 };
        int code;

        if (!change->value.data)
                return remove_numbered(writer, WRITE_REMOVE_ENTRY, hash);
        if (change->has_fence) {
                buf_reset(&writer->record);
                hlc_append(&writer->record, change->fence, HLC_PADDED);
                if (buf_failed(&writer->record))
                        return SQLITE_NOMEM;
                fence = buf_slice(&writer->record);
        }
        code = entry_bind(update, hash, change, fence);
        if (code == SQLITE_OK)
                code = sqlite_writer_run(writer, WRITE_UPDATE_ENTRY);
        if (code != SQLITE_OK || sqlite3_changes(sqlite3_db_handle(update)) > 0)
                return code;

        code = entry_bind(writer->statements[WRITE_INSERT_ENTRY], hash, change, fence);
        return code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_INSERT_ENTRY) : code;
}

/* Remove more replies than the change set adds, so that their number does not grow. */
static int remove_forgotten(struct sqlite_writer *writer, const struct change_set *change_set) {
        struct binder binder = { .statement = writer->statements[WRITE_REMOVE_FORGOTTEN] };

        binder_add_number(&binder, (int64_t)change_set->forgotten_up_to);
        binder_add_number(&binder, 1000 + 2 * (int64_t)change_set->n_replies);
        return binder.code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_FORGOTTEN) : binder.code;
}

static int write_replies(struct sqlite_writer *writer, const struct change_set *change_set) {
        int code = remove_forgotten(writer, change_set);

        for (size_t i = 0; i < change_set->n_replies && code == SQLITE_OK; i++)
                code = write_reply(writer, &change_set->replies[i]);
        for (size_t i = 0; i < change_set->n_forgotten && code == SQLITE_OK; i++)
                code = remove_numbered(writer, WRITE_REMOVE_REPLY, change_set->forgotten[i].number);
        return code;
}

static int write_notifications(struct sqlite_writer *writer, const struct change_set *change_set) {
        int code = remove_numbered(writer, WRITE_REMOVE_NOTIFICATIONS, change_set->acknowledged);

        for (size_t i = 0; i < change_set->n_notifications && code == SQLITE_OK; i++)
                code = write_notification(writer, &change_set->notifications[i]);
        return code;
}

static int write_header(struct sqlite_writer *writer, const struct change_set *change_set) {
        buf_reset(&writer->record);
        stored_header_append(&writer->record, &change_set->header);
        return put_record(writer, WRITE_HEADER, 1);
}

int sqlite_writer_put(struct sqlite_writer *writer, const struct change_set *change_set) {
        int code;

        writer->row_hash_key = change_set->header.row_hash_key;
        code = write_notifications(writer, change_set);
        if (code == SQLITE_OK)
                code = write_replies(writer, change_set);
        for (size_t i = 0; i < change_set->n_executions && code == SQLITE_OK; i++)
                code = write_execution(writer, &change_set->executions[i]);
        for (size_t i = 0; i < change_set->n_entries && code == SQLITE_OK; i++)
                code = write_entry(writer, &change_set->entries[i]);
        for (size_t i = 0; i < change_set->n_registrations && code == SQLITE_OK; i++)
                code = write_registration(writer, &change_set->registrations[i]);
        return code == SQLITE_OK ? write_header(writer, change_set) : code;
}
