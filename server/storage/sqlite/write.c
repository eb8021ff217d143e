/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/write.h"

#include "base/array.h"
#include "protocol/hlc.h"
#include "storage/sqlite/binder.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/rows.h"

/* In all slots of the hash ?1, whose slot is 0. */
#define WHERE_ENTRY        " WHERE hash BETWEEN ?1 AND ?1 + 15 AND key = ?2"
#define WHERE_REGISTRATION " WHERE hash BETWEEN ?1 AND ?1 + 15 AND substr(record, 1, length(?2)) = ?2"
_Static_assert(ROW_SLOTS == 16, "the number in the statements");

static const char *const statements_sql[] = {
        /*
         * IMMEDIATE takes the write lock at once: a busy database fails before any row is written.
         */
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_HEADER] = database_header_write_sql,
        [WRITE_UPDATE_ENTRY] = "UPDATE entries"
                               " SET version_wall_ms = ?3, version_counter = ?4, expires_at_ms = ?5,"
                               " fence = ?6, checksum = ?7, value = ?8" WHERE_ENTRY,
        [WRITE_INSERT_ENTRY] =
                "INSERT INTO entries (" STORED_ENTRY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [WRITE_REMOVE_ENTRY] = "DELETE FROM entries" WHERE_ENTRY,
        [WRITE_INSERT_REGISTRATION] =
                "INSERT INTO registrations (hash, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_REGISTRATION] = "DELETE FROM registrations" WHERE_REGISTRATION,
        [WRITE_PUT_REPLY] = "REPLACE INTO replies (number, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_REPLY] = "DELETE FROM replies WHERE number = ?1",
        /* The first rows, so that a commit after a long time without one is not slow. */
        [WRITE_REMOVE_FORGOTTEN] = "DELETE FROM replies WHERE number <= ?1 AND"
                                   " number < (SELECT min(number) FROM replies) + ?2",
        [WRITE_PUT_NOTIFICATION] =
                "INSERT INTO notifications (sequence, checksum, record) VALUES (?1, ?2, ?3)",
        [WRITE_REMOVE_NOTIFICATIONS] = "DELETE FROM notifications WHERE sequence <= ?1",
};
_Static_assert(ARRAY_LENGTH(statements_sql) == N_WRITE_STATEMENTS, "each statement has SQL");

int sqlite_writer_init(struct sqlite_writer *writer, sqlite3 *db, const struct hash_key *row_hash_key,
                       struct timescale timescale) {
        int code = SQLITE_OK;

        *writer = (struct sqlite_writer){ .timescale = timescale, .row_hash_key = *row_hash_key };
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
        buf_deinit(&writer->record);
        *writer = (struct sqlite_writer){ 0 };
}

int sqlite_writer_run(struct sqlite_writer *writer, enum write_statement which) {
        int code = sqlite3_step(writer->statements[which]);

        sqlite3_reset(writer->statements[which]);
        return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Insert a row into the first free slot of its hash. The other parameters are bound. */
static int insert(struct sqlite_writer *writer, enum write_statement which, uint64_t hash) {
        int code = SQLITE_CONSTRAINT_PRIMARYKEY;

        for (uint64_t slot = 0; slot < ROW_SLOTS && code == SQLITE_CONSTRAINT_PRIMARYKEY; slot++) {
                code = sqlite3_bind_int64(writer->statements[which], 1, (int64_t)(hash + slot));
                if (code == SQLITE_OK)
                        code = sqlite_writer_run(writer, which);
        }
        return code;
}

static bool is_persistent(const struct entry *entry) {
        return entry && entry->is_persistent;
}

static int make_stored_entry(struct sqlite_writer *writer, const struct row *row,
                             struct stored_entry *ret_stored) {
        const struct entry *entry = row->entry.after;
        struct stored_entry stored = {
                .key = entry_key(entry),
                .value = entry_value(entry),
                .version = entry_version(entry),
                .hash = row_hash_of_key(&writer->row_hash_key, entry_key(entry)),
        };
        struct hlc fence;

        if (row->entry.after_deadline_ns != DEADLINE_NEVER) {
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

static int put_entry(struct sqlite_writer *writer, const struct row *row) {
        sqlite3_stmt *update = writer->statements[WRITE_UPDATE_ENTRY];
        struct stored_entry stored;
        int code;

        code = make_stored_entry(writer, row, &stored);
        if (code == SQLITE_OK)
                code = stored_entry_bind(update, &stored);
        if (code == SQLITE_OK)
                code = sqlite_writer_run(writer, WRITE_UPDATE_ENTRY);
        if (code != SQLITE_OK || sqlite3_changes(sqlite3_db_handle(update)) > 0)
                return code;

        code = stored_entry_bind(writer->statements[WRITE_INSERT_ENTRY], &stored);
        return code == SQLITE_OK ? insert(writer, WRITE_INSERT_ENTRY, stored.hash) : code;
}

static int remove_entry(struct sqlite_writer *writer, const struct entry *entry) {
        struct binder binder = { .statement = writer->statements[WRITE_REMOVE_ENTRY] };
        struct slice key = entry_key(entry);

        binder_add_number(&binder, (int64_t)row_hash_of_key(&writer->row_hash_key, key));
        binder_add_bytes(&binder, key);
        return binder.code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_ENTRY) : binder.code;
}

static int write_entry(struct sqlite_writer *writer, const struct row *row) {
        if (is_persistent(row->entry.after))
                return put_entry(writer, row);
        if (is_persistent(row->entry.before))
                return remove_entry(writer, row->entry.before);
        return SQLITE_OK;
}

/* Bind the record that is in the buffer, and execute the statement. */
static int put_record(struct sqlite_writer *writer, enum write_statement which, uint64_t number) {
        int code = buf_failed(&writer->record)
                           ? SQLITE_NOMEM
                           : record_bind(writer->statements[which], number, buf_slice(&writer->record));

        return code == SQLITE_OK ? sqlite_writer_run(writer, which) : code;
}

static int remove_registration(struct sqlite_writer *writer, uint64_t hash, struct slice client,
                               struct slice key) {
        struct binder binder = { .statement = writer->statements[WRITE_REMOVE_REGISTRATION] };

        buf_reset(&writer->record);
        stored_registration_append_names(&writer->record, client, key);
        if (buf_failed(&writer->record))
                return SQLITE_NOMEM;
        binder_add_number(&binder, (int64_t)hash);
        binder_add_blob(&binder, buf_slice(&writer->record));
        return binder.code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_REGISTRATION) : binder.code;
}

/* An added registration replaces the one with the same names, if there is one. */
static int write_registration(struct sqlite_writer *writer, const struct row *row) {
        const struct registration *registration = row->registration.registration;
        sqlite3_stmt *insertion = writer->statements[WRITE_INSERT_REGISTRATION];
        struct stored_registration stored = { .connection = registration->connection,
                                              .user = registration->user };
        uint64_t hash;
        int code;

        buf_reset(&writer->client);
        buf_reset(&writer->key);
        registration_append_names(registration, &writer->client, &writer->key);
        if (buf_failed(&writer->client) || buf_failed(&writer->key))
                return SQLITE_NOMEM;
        stored.client = buf_slice(&writer->client);
        stored.key = buf_slice(&writer->key);
        hash = row_hash_of_names(&writer->row_hash_key, stored.client, stored.key);

        code = remove_registration(writer, hash, stored.client, stored.key);
        if (code != SQLITE_OK || !row->registration.is_added)
                return code;
        buf_reset(&writer->record);
        stored_registration_append(&writer->record, &stored);
        if (buf_failed(&writer->record))
                return SQLITE_NOMEM;
        code = record_bind(insertion, hash, buf_slice(&writer->record));
        return code == SQLITE_OK ? insert(writer, WRITE_INSERT_REGISTRATION, hash) : code;
}

static int write_reply(struct sqlite_writer *writer, const struct row *row) {
        struct stored_reply stored = {
                .digest = row->reply.digest,
                .remembered = row->reply.reply,
                .forget_at_ms = timescale_from_deadline(writer->timescale, row->reply.deadline_ns),
        };

        buf_reset(&writer->record);
        stored_reply_append(&writer->record, &stored);
        return put_record(writer, WRITE_PUT_REPLY, row->reply.number);
}

static int remove_reply(struct sqlite_writer *writer, const struct row *row) {
        int code = sqlite3_bind_int64(writer->statements[WRITE_REMOVE_REPLY], 1, (int64_t)row->reply.number);

        return code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_REPLY) : code;
}

static int write_row(struct sqlite_writer *writer, const struct row *row) {
        switch (row->type) {
        case ROW_ENTRY:
                return write_entry(writer, row);
        case ROW_REGISTRATION:
                return write_registration(writer, row);
        case ROW_REPLY:
                return write_reply(writer, row);
        case ROW_REPLY_DROPPED:
                return remove_reply(writer, row);
        }
        return SQLITE_MISUSE;
}

static int write_notification(struct sqlite_writer *writer,
                              const struct pending_notification *notification) {
        struct stored_notification stored = {
                .version = notification->version,
                .key = notification->key,
                .recipients = notification->recipients,
        };

        if (notification->entry)
                stored.value = entry_value(notification->entry);
        buf_reset(&writer->record);
        stored_notification_append(&writer->record, &stored);
        return put_record(writer, WRITE_PUT_NOTIFICATION, notification->sequence);
}

static int remove_notifications(struct sqlite_writer *writer, uint64_t delivered) {
        int code = sqlite3_bind_int64(writer->statements[WRITE_REMOVE_NOTIFICATIONS], 1, (int64_t)delivered);

        return code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_NOTIFICATIONS) : code;
}

/* Remove more replies than the batch adds, so that their number does not grow. */
static int remove_forgotten(struct sqlite_writer *writer, const struct storage_batch *batch) {
        struct binder binder = { .statement = writer->statements[WRITE_REMOVE_FORGOTTEN] };

        binder_add_number(&binder, (int64_t)batch->forgotten_reply);
        binder_add_number(&binder, 1000 + 2 * (int64_t)batch->n_rows);
        return binder.code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_REMOVE_FORGOTTEN) : binder.code;
}

int sqlite_writer_put(struct sqlite_writer *writer, const struct storage_batch *batch,
                      const struct database_header *header) {
        int code = remove_notifications(writer, batch->delivered);

        if (code == SQLITE_OK)
                code = remove_forgotten(writer, batch);
        for (size_t i = 0; i < batch->n_rows && code == SQLITE_OK; i++)
                code = write_row(writer, &batch->rows[i]);
        for (size_t i = 0; i < batch->n_notifications && code == SQLITE_OK; i++)
                code = write_notification(writer, &batch->notifications[i]);
        if (code == SQLITE_OK)
                code = database_header_bind(writer->statements[WRITE_HEADER], header, &writer->record);
        return code == SQLITE_OK ? sqlite_writer_run(writer, WRITE_HEADER) : code;
}
