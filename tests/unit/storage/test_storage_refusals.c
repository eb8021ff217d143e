/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store refuses foreign, newer, locked and incomplete data directories, explains why, and
 * changes nothing.
 */

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "storage/sqlite/load.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/write.h"
#include "unit/storage/disk.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define DATABASE           "statestored.db"
#define NEVER_FORGOTTEN_NS (INT64_MAX / 2)
#define PAGE_SIZE          4096
#define LOG_HEADER_SIZE    32

static struct disk disk;

/* Three commits: one in the database, two in the log. */
static void setup(void) {
        log_set_level(LOG_ERROR);
        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_put(&disk, "key", "value");
        COMMIT(&disk);
        disk_close(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_put(&disk, "key", "another");
        COMMIT(&disk);
        disk_put(&disk, "further", "value");
        COMMIT(&disk);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_refusals, .init = setup, .fini = teardown);

/*
 * Check that the directory is refused with this reason, and that nothing is changed. Returns the
 * log.
 */
static char *refused(struct disk *at) {
        uint64_t before = disk_fingerprint(at);
        struct capture capture;
        char *text;
        int r;

        capture_start(&capture, STDERR_FILENO);
        r = disk_open(at);
        text = capture_end(&capture);
        cr_expect_eq(r, -EBADMSG, "%d\n%s", r, text);
        cr_expect_eq(disk_fingerprint(at), before, "refused, but changed\n%s", text);
        cr_expect_not_null(strstr(text, at->directory), "%s", text);
        /* a backup is no remedy for another form */
        cr_expect_neq(strstr(text, "restore a backup") == NULL, strstr(text, "statestored wrote it") == NULL,
                      "%s", text);
        cr_expect_null(strstr(text, "statestorectl check"), "the check has just been made\n%s", text);
        return text;
}

static void expect_refused(struct disk *at, const char *reason) {
        char *text = refused(at);

        cr_expect_not_null(strstr(text, reason), "\"%s\" is not in: %s", reason, text);
        free(text);
}

static const struct {
        const char *name;
        struct slice content;
        const char *reason;
} foreign[] = {
        { "a text",
          S("This file is not a database, but it has more than the hundred bytes of a header, which is "
            "the part that the store reads."),
          "file is not a database" },
        { "the beginning of a header", S("SQLite format 3"), "file is not a database" },
};

Test(storage_refusals, file_that_is_not_a_database) {
        for (size_t i = 0; i < N_ROWS(foreign); i++) {
                struct disk other;

                disk_init(&other);
                disk_write(&other, DATABASE, foreign[i].content.data, foreign[i].content.length);
                expect_refused(&other, foreign[i].reason);
                disk_deinit(&other);
        }
}

Test(storage_refusals, foreign_database) {
        struct disk other;

        disk_init(&other);
        disk_sql(&other, "CREATE TABLE entries (key, value)");
        expect_refused(&other, "not a database of statestored");
        disk_sql(&other, "PRAGMA journal_mode = WAL; INSERT INTO entries VALUES (1, 2)");
        expect_refused(&other, "not a database of statestored");
        disk_deinit(&other);
}

/* The checksums are right: a writer of the directory can compute them. */
Test(storage_refusals, client_id_that_no_client_can_have) {
        static const uint8_t client_id[UINT16_MAX + 1];

        disk_watch(&disk, (struct slice){ client_id, UINT16_MAX }, S("key"), 1);
        COMMIT(&disk);
        disk_close(&disk);
        cr_assert_eq(disk_open(&disk), 0);

        disk_watch(&disk, (struct slice){ client_id, UINT16_MAX + 1 }, S("key"), 1);
        COMMIT(&disk);
        disk_close(&disk);
        expect_refused(&disk, "a row of the table registrations is damaged");
}

static void add_entry_ahead(struct disk *to) {
        disk_put(to, "key", "value");
        to->clock.counter--;
}

static void add_reply_ahead(struct disk *to) {
        disk_reply(to, 1, OUTCOME_DONE, (struct version){ DISK_WALL_MS + 1, 0 }, NEVER_FORGOTTEN_NS);
}

static void add_notification_ahead(struct disk *to) {
        to->clock.counter++;
        disk_remove(to, S("key"));
        disk_notify(to, S("recipients"));
        to->clock.counter--;
}

/* An expiry of the key would be a notification without a key. */
static void add_registration_without_key(struct disk *to) {
        disk_watch(to, S("client"), S(""), 1);
}

static void add_value_reply(struct disk *to) {
        disk_reply(to, 1, OUTCOME_VALUE, (struct version){ 0 }, NEVER_FORGOTTEN_NS);
}

static void add_page_reply(struct disk *to) {
        disk_reply(to, 1, OUTCOME_PAGE, (struct version){ 0 }, NEVER_FORGOTTEN_NS);
}

static void add_execution_ahead(struct disk *to) {
        disk_execute(to, 1, (struct version){ DISK_WALL_MS + 1, 0 });
}

static void add_negative_version(struct disk *to) {
        disk_reply(to, 1, OUTCOME_DONE, (struct version){ -1, 0 }, NEVER_FORGOTTEN_NS);
}

static const struct {
        const char *name;
        void (*add)(struct disk *to);
        const char *reason;
} inconsistent_rows[] = {
        { "an entry above the clock", add_entry_ahead, "a row of the table entries is damaged" },
        { "a reply above the clock", add_reply_ahead, "a row of the table replies is damaged" },
        { "an execution above the clock", add_execution_ahead, "a row of the table executions is damaged" },
        { "a notification above the clock", add_notification_ahead,
          "a row of the table notifications is damaged" },
        { "a registration without a key", add_registration_without_key,
          "a row of the table registrations is damaged" },
        { "a reply with a value", add_value_reply, "a row of the table replies is damaged" },
        { "a reply with a page", add_page_reply, "a row of the table replies is damaged" },
        { "a negative version", add_negative_version, "a row of the table replies is damaged" },
};

/* The checksums are right: a writer of the directory can compute them. */
Test(storage_refusals, inconsistent_row) {
        for (size_t i = 0; i < N_ROWS(inconsistent_rows); i++) {
                struct disk other;

                disk_init(&other);
                cr_assert_eq(disk_open(&other), 0);
                inconsistent_rows[i].add(&other);
                COMMIT(&other);
                disk_close(&other);
                expect_refused(&other, inconsistent_rows[i].reason);
                disk_deinit(&other);
        }
}

static void lower_notification_sequence(struct state_header *header) {
        header->notification_sequence--;
}

static void negate_notification_sequence(struct state_header *header) {
        header->notification_sequence = UINT64_MAX;
}

static void negate_clock(struct state_header *header) {
        header->clock.wall_ms = -1;
}

static void end_clock(struct state_header *header) {
        header->clock.wall_ms = INT64_MAX;
}

static void spoil_node_id(struct state_header *header) {
        snprintf(header->node_id, sizeof(header->node_id), "no:de");
}

static void clear_instance_id(struct state_header *header) {
        header->instance_id[0] = '\0';
}

static void shorten_instance_id(struct state_header *header) {
        header->instance_id[sizeof(header->instance_id) - 2] = '\0';
}

static void spoil_instance_id(struct state_header *header) {
        header->instance_id[0] = '#';
}

static const struct {
        const char *name;
        void (*row)(struct state_header *header);
        const char *reason;
} inconsistent_headers[] = {
        { "a notification above the last sequence", lower_notification_sequence,
          "a row of the table notifications is damaged: \\\"2\\\"" },
        { "a negative sequence", negate_notification_sequence, "the table header is damaged" },
        { "a negative clock", negate_clock, "the table header is damaged" },
        { "a clock that cannot advance", end_clock, "the table header is damaged" },
        { "an invalid node id", spoil_node_id, "the table header is damaged" },
        { "no instance id", clear_instance_id, "the table header is damaged" },
        { "a short instance id", shorten_instance_id, "the table header is damaged" },
        { "an invalid instance id", spoil_instance_id, "the table header is damaged" },
};

static void change_header(const struct disk *of, void (*row)(struct state_header *header)) {
        struct change_set changed = { 0 };
        struct sqlite_writer writer;
        char path[128];
        sqlite3 *db;

        snprintf(path, sizeof(path), "%s/" DATABASE, of->directory);
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        cr_assert_eq(sqlite_load_header(db, &changed.header), SQLITE_OK);
        row(&changed.header);
        cr_assert_eq(sqlite_writer_init(&writer, db), SQLITE_OK);
        cr_assert_eq(sqlite_writer_put(&writer, &changed), SQLITE_OK);
        sqlite_writer_deinit(&writer);
        sqlite3_close(db);
}

Test(storage_refusals, inconsistent_header) {
        disk_put(&disk, "key", "value");
        for (size_t i = 0; i < 2; i++)
                disk_notify(&disk, S("recipients"));
        COMMIT(&disk);
        disk_close(&disk);

        for (size_t i = 0; i < N_ROWS(inconsistent_headers); i++) {
                struct disk copy;

                disk_copy(&disk, &copy);
                change_header(&copy, inconsistent_headers[i].row);
                expect_refused(&copy, inconsistent_headers[i].reason);
                disk_deinit(&copy);
        }
}

static const struct {
        const char *name;
        const char *sql;
        const char *reason;
} schemas[] = {
        { "newer", "PRAGMA user_version = 1000", "a newer statestored wrote it" },
        { "much newer", "PRAGMA user_version = 2147483647", "a newer statestored wrote it" },
        { "an older one", "PRAGMA user_version = 4", "export with the version that wrote it" },
        { "the first one", "PRAGMA user_version = 1", "export with the version that wrote it" },
        { "zero", "PRAGMA user_version = 0", "an older statestored wrote it" },
        { "another application", "PRAGMA application_id = 1", "not a database of statestored" },
        { "a column less", "ALTER TABLE entries DROP COLUMN tag", "no such column: tag" },
        { "a table less", "DROP TABLE registrations", "no such table: registrations" },
        { "no header", "DELETE FROM header", "the table header is damaged" },
};

/* The schema differs in the database, or only in the log. */
Test(storage_refusals, other_schema) {
        for (size_t i = 0; i < N_ROWS(schemas); i++) {
                struct disk changed, in_log;
                sqlite3 *db;
                char path[128];

                disk_copy(&disk, &changed);
                disk_sql(&changed, schemas[i].sql);
                cr_expect_not(disk_has(&changed, DATABASE "-wal"));
                expect_refused(&changed, schemas[i].reason);
                disk_deinit(&changed);

                disk_copy(&disk, &changed);
                snprintf(path, sizeof(path), "%s/" DATABASE, changed.directory);
                cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
                cr_assert_eq(sqlite3_exec(db, schemas[i].sql, NULL, NULL, NULL), SQLITE_OK);
                disk_copy(&changed, &in_log);
                sqlite3_close(db);
                cr_expect(disk_has(&in_log, DATABASE "-wal"));
                expect_refused(&in_log, schemas[i].reason);
                disk_deinit(&in_log);
                disk_deinit(&changed);
        }
}

/* A start that was interrupted leaves such a file. */
Test(storage_refusals, empty_database_is_filled) {
        struct disk other;

        disk_init(&other);
        disk_write(&other, DATABASE, "", 0);
        disk_check(&other);
        disk_close(&other);
        disk_unlink(&other, "acknowledged");
        disk_unlink(&other, DATABASE);
        disk_sql(&other, "PRAGMA journal_mode = WAL");
        disk_check(&other);
        disk_put(&other, "key", "value");
        COMMIT(&other);
        disk_close(&other);

        /* Here the database was replaced: there was a commit. */
        disk_unlink(&other, DATABASE);
        disk_sql(&other, "PRAGMA journal_mode = WAL");
        expect_refused(&other, "it is empty");
        disk_deinit(&other);
}

Test(storage_refusals, additional_views_and_indices_are_accepted) {
        disk_close(&disk);
        disk_sql(&disk, "CREATE VIEW large AS SELECT number FROM entries WHERE length(content) > 1000;"
                        "CREATE INDEX by_length ON entries (length(content));"
                        "CREATE TABLE notes (note); ANALYZE");
        disk_check(&disk);
        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_refusals, changed_journal_mode_is_accepted) {
        disk_close(&disk);
        disk_sql(&disk, "PRAGMA journal_mode = DELETE");
        disk_check(&disk);
        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        cr_expect(disk_has(&disk, DATABASE "-wal"));
        disk_close(&disk);
        disk_check(&disk);
}

/* SQLite finds the damage when it opens the database, before the schema is checked. */
Test(storage_refusals, truncated_database_beside_an_empty_log) {
        struct disk copy;
        uint8_t *bytes;

        disk_copy(&disk, &copy);
        disk_unlink(&copy, "acknowledged");
        cr_assert_geq(disk_read(&copy, DATABASE, &bytes), 2 * PAGE_SIZE);
        disk_write(&copy, DATABASE, bytes, PAGE_SIZE);
        free(bytes);
        cr_assert_geq(disk_read(&copy, DATABASE "-wal", &bytes), LOG_HEADER_SIZE);
        disk_write(&copy, DATABASE "-wal", bytes, LOG_HEADER_SIZE);
        free(bytes);

        expect_refused(&copy, "malformed");
        disk_deinit(&copy);
}

/* Other files show that there was a database. Creating a new one would hide its loss. */
Test(storage_refusals, missing_database_with_other_files) {
        struct disk copy;

        disk_copy(&disk, &copy);
        disk_unlink(&copy, DATABASE);
        expect_refused(&copy, DATABASE "-wal");
        disk_unlink(&copy, DATABASE "-wal");
        expect_refused(&copy, "acknowledged");
        disk_unlink(&copy, "acknowledged");
        cr_expect_eq(disk_open(&copy), 0);
        cr_expect_eq(copy.loaded.n_lines, 0);
        disk_deinit(&copy);
}

Test(storage_refusals, database_older_than_the_watermark) {
        struct disk older, newer;
        uint8_t *watermark;
        size_t length;

        disk_copy(&disk, &older);
        disk_put(&disk, "key", "the newest");
        COMMIT(&disk);
        length = disk_read(&disk, "acknowledged", &watermark);
        disk_write(&older, "acknowledged", watermark, length);
        expect_refused(&older, "was acknowledged");

        disk_copy(&disk, &newer);
        disk_unlink(&newer, "acknowledged");
        disk_check(&newer);
        disk_unlink(&older, "acknowledged");
        disk_check(&older);

        free(watermark);
        disk_deinit(&older);
        disk_deinit(&newer);
}

static const struct {
        const char *name;
        struct slice watermark;
} damaged_watermarks[] = {
        { "empty", S("") },
        { "cut off", S("0123456789abcdef0123456789abcdef 0000000") },
        { "with another checksum",
          S("0123456789abcdef0123456789abcdef 00000000000000000099 0123456789abcdef\n") },
};

/* The watermark is only an additional check. */
Test(storage_refusals, damaged_watermark_is_ignored) {
        for (size_t i = 0; i < N_ROWS(damaged_watermarks); i++) {
                struct disk copy;

                disk_copy(&disk, &copy);
                disk_write(&copy, "acknowledged", damaged_watermarks[i].watermark.data,
                           damaged_watermarks[i].watermark.length);
                disk_check(&copy);
                disk_deinit(&copy);
        }
}

Test(storage_refusals, directory_locked_by_another_process) {
        struct storage *second;
        struct capture capture;
        char *text;

        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(storage_sqlite_open(&second, disk.directory), -EBUSY);
        text = capture_end(&capture);
        cr_expect_not_null(strstr(text, "another process"), "%s", text);
        cr_expect_not_null(strstr(text, disk.directory), "%s", text);
        free(text);

        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_refusals, directory_that_cannot_be_created) {
        struct storage *storage;
        char path[128];

        snprintf(path, sizeof(path), "%s/no such directory/directory", disk.directory);
        cr_expect_eq(storage_sqlite_open(&storage, path), -ENOENT);
        snprintf(path, sizeof(path), "%s/" DATABASE, disk.directory);
        cr_expect_eq(storage_sqlite_open(&storage, path), -ENOTDIR);
        cr_expect_eq(storage_sqlite_open(&storage, ""), -ENOENT);
}
