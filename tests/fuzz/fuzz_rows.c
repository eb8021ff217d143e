/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored rows. Rows from the input are written and loaded, and must be equal. Then a cell is changed, or a row gets
 * another row's content: loading must fail, or give the same data.
 */

#include <errno.h>
#include <stdio.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "protocol/hlc.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/rows.h"
#include "storage/sqlite/schema.h"

#define N_ROWS_MAX 6
#define NOW        ((struct now){ .wall_ms = 1000000, .mono_ns = 1000000000 })

static const struct hash_key row_hash_key = { { 8 } };

static sqlite3 *open_database(void) {
        static sqlite3 *db;

        if (!db) {
                log_set_level((enum log_level) - 1); /* each refusal logs a line */
                ASSERT(sqlite3_open(":memory:", &db) == SQLITE_OK && schema_create(db) == SQLITE_OK);
        }
        return db;
}

/* 1. Writing */

/* Writes a row whose parameters are bound by the caller's function. */
static bool insert(sqlite3 *db, const char *sql, int (*bind)(sqlite3_stmt *, const void *),
                   const void *row) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;

        ASSERT(database_prepare(db, sql, &statement) == SQLITE_OK && bind(statement, row) == SQLITE_OK);
        return sqlite3_step(statement) == SQLITE_DONE; /* fails if the key exists */
}

static int bind_entry(sqlite3_stmt *statement, const void *row) {
        return stored_entry_bind(statement, row);
}

static int bind_registration(sqlite3_stmt *statement, const void *row) {
        return stored_registration_bind(statement, row);
}

static int bind_reply(sqlite3_stmt *statement, const void *row) {
        return stored_reply_bind(statement, row);
}

static int bind_notification(sqlite3_stmt *statement, const void *row) {
        return stored_notification_bind(statement, row);
}

static int bind_meta(sqlite3_stmt *statement, const void *row) {
        return stored_meta_bind(statement, row);
}

static void add_entry(sqlite3 *db, struct slice *input) {
        struct stored_entry entry = { .key = input_text(input), .value = input_text(input) };
        static const char *const fences[] = { "1:2:c", "0001696374425000:00007:node" };
        size_t fence = input_below(input, 3);

        entry.hash = row_hash_of_key(&row_hash_key, entry.key);
        entry.version.wall_ms = (int64_t)input_number(input, 6);
        entry.version.counter = (uint32_t)input_number(input, 4) & INT32_MAX;
        entry.expires = input_chance(input, 50);
        entry.expires_at_ms = (int64_t)input_number(input, 3);
        if (fence > 0)
                entry.fence = slice_from_string(fences[fence - 1]);
        insert(db, "INSERT INTO entries (" STORED_ENTRY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
               bind_entry, &entry);
}

static void add_registration(sqlite3 *db, struct slice *input) {
        struct stored_registration registration = { .client = input_text(input), .key = input_text(input) };

        registration.hash = row_hash_of_names(&row_hash_key, registration.client, registration.key);
        registration.connection = input_number(input, 8);
        if (input_chance(input, 50))
                registration.user = input_text(input);
        insert(db,
               "INSERT INTO registrations (" STORED_REGISTRATION_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
               bind_registration, &registration);
}

static void add_reply(sqlite3 *db, struct slice *input) {
        struct stored_reply reply = { .number = 1 + input_number(input, 1) };

        reply.digest.bytes[0] = input_byte(input);
        reply.remembered.outcome = (uint16_t)input_below(input, N_OUTCOMES);
        if (reply.remembered.outcome == OUTCOME_VALUE || reply.remembered.outcome == OUTCOME_PAGE)
                reply.remembered.outcome = OUTCOME_DONE; /* the others are never remembered */
        reply.remembered.has_version = input_chance(input, 50);
        reply.remembered.version_wall_ms = (int64_t)input_number(input, 6);
        reply.remembered.version_counter = (uint32_t)input_number(input, 4) & INT32_MAX;
        reply.forget_at_ms = 2000000 + (int64_t)input_number(input, 3);
        insert(db, "INSERT INTO replies (" STORED_REPLY_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
               bind_reply, &reply);
}

static void add_notification(sqlite3 *db, struct slice *input) {
        struct stored_notification notification = { .sequence = 1 + input_number(input, 1) };

        notification.version.wall_ms = (int64_t)input_number(input, 6);
        notification.version.counter = (uint32_t)input_number(input, 4) & INT32_MAX;
        notification.key = input_text(input);
        if (notification.key.length == 0)
                notification.key = SLICE_LITERAL("key");
        if (input_chance(input, 70))
                notification.value = input_text(input);
        notification.recipients = input_text(input);
        insert(db,
               "INSERT INTO notifications (" STORED_NOTIFICATION_COLUMNS
               ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
               bind_notification, &notification);
}

static void fill(sqlite3 *db, struct slice *input) {
        static void (*const add[])(sqlite3 *, struct slice *) = { add_entry, add_registration, add_reply,
                                                                  add_notification };
        struct stored_meta meta = { .header = { .digest_key = { { 7 } },
                                                .instance_id = "0123456789abcdef0123456789abcdef",
                                                .clock = { INT64_C(1) << 48, 0 },
                                                .notification_sequence = 256 },
                                    .row_hash_key = row_hash_key,
                                    .reading_ms = 1000000 };
        size_t n_rows = input_below(input, N_ROWS_MAX + 1);

        snprintf(meta.header.node_id, sizeof(meta.header.node_id), "StateStore");
        for (size_t i = 0; i < n_rows; i++)
                add[input_below(input, 4)](db, input);
        ASSERT(insert(db, stored_meta_write_sql, bind_meta, &meta));
}

/* 2. Loading: one line per row */

static void append_version(struct buf *text, struct version version) {
        buf_append_uint(text, (uint64_t)version.wall_ms);
        buf_append_string(text, ":");
        buf_append_uint(text, version.counter);
}

static int take_header(void *userdata, const struct storage_header *header) {
        append_version(userdata, header->clock);
        buf_append_string(userdata, header->instance_id);
        return 0;
}

static int take_entry(void *userdata, const struct entry_fields *fields) {
        buf_append_string(userdata, "\nentry ");
        buf_append_slice(userdata, fields->key);
        buf_append_string(userdata, "=");
        buf_append_slice(userdata, fields->value);
        append_version(userdata, fields->version);
        buf_append_uint(userdata, (uint64_t)fields->deadline_ns);
        if (fields->fence)
                hlc_append(userdata, *fields->fence, HLC_UNPADDED);
        return 0;
}

static int take_registration(void *userdata, struct slice client, struct slice user, struct slice key,
                             uint64_t connection) {
        buf_append_string(userdata, "\nregistration ");
        buf_append_slice(userdata, client);
        buf_append_string(userdata, " ");
        buf_append_slice(userdata, user);
        buf_append_string(userdata, " ");
        buf_append_slice(userdata, key);
        buf_append_uint(userdata, connection);
        return 0;
}

static int take_reply(void *userdata, uint64_t number, const struct digest *digest,
                      struct remembered_reply reply, int64_t deadline_ns) {
        buf_append_string(userdata, "\nreply ");
        buf_append_uint(userdata, number);
        buf_append(userdata, digest, sizeof(*digest));
        buf_append_uint(userdata, reply.outcome);
        buf_append_uint(userdata, reply.has_version);
        append_version(userdata, (struct version){ reply.version_wall_ms, reply.version_counter });
        buf_append_uint(userdata, (uint64_t)deadline_ns);
        return 0;
}

static int take_notification(void *userdata, const struct pending_notification *notification) {
        buf_append_string(userdata, "\nnotification ");
        buf_append_uint(userdata, notification->sequence);
        append_version(userdata, notification->version);
        buf_append_slice(userdata, notification->key);
        if (notification->entry) {
                buf_append_string(userdata, "=");
                buf_append_slice(userdata, entry_value(notification->entry));
        }
        buf_append_string(userdata, " ");
        buf_append_slice(userdata, notification->recipients);
        return 0;
}

static int load(sqlite3 *db, struct buf *text) {
        struct directory directory = { .fd = -1, .path = (char *)"fuzz", .database = (char *)"fuzz" };
        struct storage_sink sink = { .header = take_header,
                                     .entry = take_entry,
                                     .registration = take_registration,
                                     .reply = take_reply,
                                     .notification = take_notification,
                                     .userdata = text };
        struct load_result result;

        return sqlite_load(db, &directory, &sink, NOW, &result);
}

/* 3. Changing */

static const char *const changes[] = {
        "UPDATE entries SET key = ?1 WHERE key = (SELECT min(key) FROM entries)",
        "UPDATE entries SET value = ?1 WHERE key = (SELECT min(key) FROM entries)",
        "UPDATE entries SET version_wall_ms = ?1",
        "UPDATE entries SET version_counter = ?1",
        "UPDATE entries SET expires_at_ms = ?1",
        "UPDATE entries SET fence = ?1",
        "UPDATE entries SET checksum = ?1",
        "UPDATE entries SET value = (SELECT value FROM entries ORDER BY ?1 LIMIT 1)",
        "INSERT INTO entries SELECT hash + 1, ?1, version_wall_ms, version_counter, expires_at_ms, fence,"
        " checksum, value FROM entries LIMIT 1",
        "UPDATE entries SET hash = ?1",
        "UPDATE registrations SET hash = ?1",
        "UPDATE registrations SET client = ?1 WHERE client = (SELECT min(client) FROM registrations)",
        "UPDATE registrations SET key = ?1 WHERE key = (SELECT min(key) FROM registrations)",
        "UPDATE registrations SET connection = ?1",
        "UPDATE registrations SET user = ?1",
        "UPDATE replies SET slot = ?1 WHERE slot = (SELECT min(slot) FROM replies)",
        "UPDATE replies SET digest = ?1",
        "UPDATE replies SET outcome = ?1",
        "UPDATE replies SET has_version = ?1",
        "UPDATE replies SET version_counter = ?1",
        "UPDATE replies SET forget_at_ms = ?1",
        "UPDATE notifications SET sequence = ?1 WHERE sequence = (SELECT min(sequence) FROM notifications)",
        "UPDATE notifications SET version_wall_ms = ?1",
        "UPDATE notifications SET version_counter = ?1",
        "UPDATE notifications SET key = ?1",
        "UPDATE notifications SET value = ?1",
        "UPDATE notifications SET recipients = ?1",
        "UPDATE meta SET value = ?1 WHERE name = 'digest_key'",
        "UPDATE meta SET value = ?1 WHERE name = 'instance_id'",
        "UPDATE meta SET value = ?1 WHERE name = 'clock_wall_ms'",
        "DELETE FROM meta WHERE name >= ?1",
};
#define N_CHANGES ARRAY_LENGTH(changes)

/* A value of any type. */
static void bind_any(sqlite3_stmt *statement, struct slice *input) {
        struct slice text;

        switch (input_below(input, 5)) {
        case 0:
                sqlite3_bind_null(statement, 1);
                break;
        case 1:
                sqlite3_bind_int64(statement, 1, (int64_t)input_number(input, 8));
                break;
        case 2:
                sqlite3_bind_double(statement, 1, (double)input_number(input, 2) / 4);
                break;
        case 3:
                text = input_text(input);
                sqlite3_bind_text(statement, 1, (const char *)text.data, (int)text.length, SQLITE_STATIC);
                break;
        default:
                text = input_text(input);
                sqlite3_bind_blob(statement, 1, text.data, (int)text.length, SQLITE_STATIC);
        }
}

/* Some changes violate a constraint: then nothing changes. */
static void change(sqlite3 *db, struct slice *input) {
        CLEANUP(cleanup_statement) sqlite3_stmt *statement = NULL;

        ASSERT(database_prepare(db, changes[input_below(input, N_CHANGES)], &statement) == SQLITE_OK);
        bind_any(statement, input);
        sqlite3_step(statement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(buf_deinit) struct buf stored = { 0 }, loaded = { 0 };
        struct slice input = { data, size };
        sqlite3 *db = open_database();
        int r;

        ASSERT(database_run(db, "BEGIN") == SQLITE_OK);
        fill(db, &input);
        ASSERT(load(db, &stored) == 0);
        while (input.length > 0) {
                change(db, &input);
                buf_reset(&loaded);
                r = load(db, &loaded);
                ASSERT(r == -EBADMSG || (r == 0 && slice_equal(buf_slice(&loaded), buf_slice(&stored))));
        }
        ASSERT(database_run(db, "ROLLBACK") == SQLITE_OK);
        return 0;
}
