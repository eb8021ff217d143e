/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Data directories that older versions wrote. With schema 1 there is no table notifications. The oldest ones have a seed
 * in the table meta instead of a digest key, too.
 */

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

#include "storage/sqlite/checksum.h"
#include "storage/sqlite/maintenance.h"
#include "unit/storage/disk.h"

#define SEED UINT64_C(0x0123456789abcdef)

static sqlite3 *open_database(const struct disk *disk) {
        char path[128];
        sqlite3 *db;

        snprintf(path, sizeof(path), "%s/statestored.db", disk->directory);
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        return db;
}

/* The value is valid until the caller frees the statement. */
static sqlite3_stmt *read_meta(sqlite3 *db, const char *name) {
        sqlite3_stmt *statement;

        cr_assert_eq(sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE name = ?1", -1, &statement, NULL),
                     SQLITE_OK);
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s", name);
        return statement;
}

/* The checksum as the older version computed it. */
static uint64_t old_checksum(sqlite3 *db) {
        static const char *const texts[] = { "instance_id", "node_id" };
        static const char *const names[] = { "clock_wall_ms", "clock_counter", "departures",   "saved_at_ms",
                                             "wall_shift_ms", "commits",       "rows_checksum" };
        uint64_t numbers[8] = { SEED }, checksum = 0;

        for (size_t i = 0; i < 2; i++) {
                sqlite3_stmt *statement = read_meta(db, texts[i]);

                checksum = checksum_add_bytes(
                        checksum, slice_from_string((const char *)sqlite3_column_text(statement, 0)));
                sqlite3_finalize(statement);
        }
        for (size_t i = 0; i < 7; i++) {
                sqlite3_stmt *statement = read_meta(db, names[i]);

                numbers[i + 1] = (uint64_t)sqlite3_column_int64(statement, 0);
                sqlite3_finalize(statement);
        }
        return checksum_add_numbers(checksum, numbers, 8);
}

#define MAKE_SCHEMA_1                                                                                       \
        "DROP TABLE notifications; DELETE FROM meta WHERE name = 'notification_sequence';"                  \
        "PRAGMA user_version = 1;"

static void make_old(const struct disk *disk, uint64_t checksum_error) {
        sqlite3 *db = open_database(disk);
        char sql[400];

        snprintf(sql, sizeof(sql),
                 MAKE_SCHEMA_1 "DELETE FROM meta WHERE name = 'digest_key';"
                               "INSERT INTO meta VALUES ('seed', '%016" PRIx64 "');"
                               "UPDATE meta SET value = %" PRId64 " WHERE name = 'checksum'",
                 SEED, (int64_t)(old_checksum(db) + checksum_error));
        sqlite3_close(db);
        disk_sql(disk, sql);
}

static struct disk disk;

static void setup(void) {
        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_put(&disk, "k", "v");
        disk_watch(&disk, S("c"), S("k"), 7);
        disk_reply(&disk, 3, OUTCOME_DONE, (struct version){ 1, 2 }, disk.now.mono_ns + 1000000000);
        COMMIT(&disk);
        disk_close(&disk);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_upgrade, .init = setup, .fini = teardown);

Test(storage_upgrade, keeps_all_rows_and_draws_a_stable_digest_key) {
        struct hash_key first;

        make_old(&disk, 0);
        disk_check(&disk);
        first = disk.header.digest_key;
        cr_expect_neq(memcmp(&first, &(struct hash_key){ 0 }, sizeof(first)), 0);

        disk_put(&disk, "k", "w");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
        cr_expect_eq(memcmp(&disk.header.digest_key, &first, sizeof(first)), 0);
}

Test(storage_upgrade, detects_damage_in_the_old_table) {
        make_old(&disk, 1);
        cr_expect_eq(disk_open(&disk), -EBADMSG);
}

Test(storage_upgrade, schema_1_is_upgraded_when_it_is_opened_for_writing) {
        disk_sql(&disk, MAKE_SCHEMA_1);
        disk_check(&disk);
        cr_expect_eq(disk.header.notification_sequence, 0);

        disk_put(&disk, "k", "w");
        disk_notify(&disk, S("k"), S("c"));
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
        cr_expect_eq(disk.header.notification_sequence, 1);
}

Test(storage_upgrade, upgrade_survives_a_kill_before_the_first_commit) {
        struct disk killed;

        disk_sql(&disk, MAKE_SCHEMA_1);
        disk_check(&disk);
        disk_copy(&disk, &killed);
        disk_check(&killed);
        disk_put(&killed, "k", "w");
        disk_notify(&killed, S("k"), S("c"));
        COMMIT(&killed);
        disk_deinit(&killed);
}

Test(storage_upgrade, schema_1_is_checked_and_copied_without_an_upgrade) {
        struct storage_census census;
        struct disk copied;
        char file[128];
        uint64_t before;

        disk_sql(&disk, MAKE_SCHEMA_1);
        before = disk_fingerprint(&disk);
        disk_init_like(&copied, &disk);
        snprintf(file, sizeof(file), "%s/statestored.db", copied.directory);
        cr_expect_eq(storage_sqlite_check(disk.directory, &census), 0);
        cr_expect_eq(census.n_entries, 1);
        cr_expect_eq(census.n_notifications, 0);
        cr_expect_eq(storage_sqlite_backup(disk.directory, file), 0);
        cr_expect_eq(disk_fingerprint(&disk), before);
        disk_check(&copied);
        disk_deinit(&copied);
}

Test(storage_upgrade, damage_of_schema_1_is_detected) {
        disk_sql(&disk, MAKE_SCHEMA_1 "UPDATE entries SET value = 'w'");
        cr_expect_eq(disk_open(&disk), -EBADMSG);
}
