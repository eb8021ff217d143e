/* SPDX-License-Identifier: Apache-2.0 */

/* Other processes use the directory: check, backup, and the sqlite3 tool. */

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/outcome.h"
#include "storage/sqlite/maintenance.h"
#include "unit/storage/disk.h"
#include "unit/support/capture.h"

#define DATABASE "statestored.db"
#define MS       INT64_C(1000000)

static struct disk disk;
static char backup[128];
static struct storage_census census;

static void setup(void) {
        log_set_level(LOG_ERROR);
        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        for (int i = 0; i < 30; i++) {
                char key[16];

                snprintf(key, sizeof(key), "key-%d", i);
                disk_put(&disk, key, "value");
        }
        COMMIT(&disk);
        disk_close(&disk);

        cr_assert_eq(disk_open(&disk), 0);
        disk_watch(&disk, S("c"), S("key-1"), 3);
        disk_watch(&disk, S("d"), S("key-1"), 4);
        disk_put(&disk, "key-1", "value");
        disk_notify(&disk, S("c, d"));
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 5000 * MS); /* long ago: the check reads the clock */
        disk_reply(&disk, 2, OUTCOME_DONE, disk.clock, INT64_MAX / 2 / MS * MS);
        COMMIT(&disk);
        snprintf(backup, sizeof(backup), "%s/backup.db", disk.directory);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_maintenance, .init = setup, .fini = teardown);

/* Damage a value: SQLite does not notice that. */
static void damage(struct disk *at) {
        uint8_t *bytes, *found;
        size_t length = disk_read(at, DATABASE, &bytes);

        found = memmem(bytes, length, "key-17", strlen("key-17"));
        cr_assert_not_null(found);
        found = memmem(found, (size_t)(bytes + length - found), "value", strlen("value"));
        cr_assert_not_null(found);
        *found ^= 4;
        disk_write(at, DATABASE, bytes, length);
        free(bytes);
}

static int rename_database(void) {
        char database[128];

        snprintf(database, sizeof(database), "%s/" DATABASE, disk.directory);
        return rename(database, backup);
}

static void check_census(const char *path) {
        census = (struct storage_census){ 0 };
        cr_expect_eq(storage_sqlite_check(path, &census), 0);
        cr_expect_eq(census.n_entries, 30);
        cr_expect_eq(census.n_registrations, 2);
        cr_expect_eq(census.n_replies, 1);
        cr_expect_eq(census.n_notifications, 1);
}

Test(storage_maintenance, check_counts_rows_and_loses_nothing) {
        struct disk killed;
        uint64_t before;

        disk_copy(&disk, &killed);
        check_census(killed.directory);
        disk_check(&killed);
        disk_deinit(&killed);

        disk_close(&disk);
        before = disk_fingerprint(&disk);
        check_census(disk.directory);
        cr_expect_eq(disk_fingerprint(&disk), before);
        disk_check(&disk);
}

Test(storage_maintenance, check_refuses_a_running_store) {
        cr_expect_eq(storage_sqlite_check(disk.directory, &census), -EBUSY);
        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_maintenance, check_detects_damage_and_changes_nothing) {
        uint64_t before;

        disk_close(&disk);
        damage(&disk);
        before = disk_fingerprint(&disk);
        cr_expect_eq(storage_sqlite_check(disk.directory, &census), -EBADMSG);
        cr_expect_eq(storage_sqlite_backup(disk.directory, backup, &census), -EBADMSG);
        cr_expect_eq(disk_fingerprint(&disk), before);
}

/* The database of a data directory stands for the directory. */
Test(storage_maintenance, check_accepts_the_file_of_a_backup) {
        char database[128];
        uint64_t before;

        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        disk_close(&disk);
        before = disk_fingerprint(&disk);
        check_census(backup);
        snprintf(database, sizeof(database), "%s/" DATABASE, disk.directory);
        check_census(database);
        cr_expect_eq(disk_fingerprint(&disk), before);
        cr_expect_not(disk_has(&disk, "backup.db-wal"));
        cr_expect_not(disk_has(&disk, "backup.db-shm"));
}

/* The log of a copy that was made by hand is read, too. A path may have any characters. */
Test(storage_maintenance, check_reads_the_log_of_a_file) {
        uint8_t *bytes;
        size_t length;

        for (int i = 0; i < 2; i++) {
                length = disk_read(&disk, i ? DATABASE "-wal" : DATABASE, &bytes);
                disk_write(&disk, i ? "a?b%20#.db-wal" : "a?b%20#.db", bytes, length);
                free(bytes);
        }
        snprintf(backup, sizeof(backup), "%s/a?b%%20#.db", disk.directory);
        check_census(backup);
        disk_close(&disk);

        length = disk_read(&disk, DATABASE, &bytes);
        disk_unlink(&disk, "a?b%20#.db-wal");
        disk_write(&disk, "a?b%20#.db", bytes, length);
        free(bytes);
        check_census(backup);
}

Test(storage_maintenance, check_detects_a_damaged_backup) {
        struct capture capture;
        char *text;

        disk_close(&disk);
        damage(&disk);
        cr_assert_eq(rename_database(), 0);
        capture_start(&capture, STDERR_FILENO);
        cr_expect_eq(storage_sqlite_check(backup, &census), -EBADMSG);
        text = capture_end(&capture);
        cr_expect_not_null(strstr(text, "use another backup"), "%s", text);
        free(text);
}

Test(storage_maintenance, check_and_backup_fail_without_a_database) {
        struct disk none;

        disk_init(&none);
        cr_expect_eq(storage_sqlite_check(none.directory, &census), -ENOENT);
        cr_expect_eq(storage_sqlite_backup(none.directory, backup, &census), -ENOENT);
        cr_expect_not(disk_has(&disk, "backup.db"));
        cr_expect_not(disk_has(&none, "lock"));
        disk_deinit(&none);
        cr_expect_eq(storage_sqlite_check("/no such directory", &census), -ENOENT);
        cr_expect_eq(storage_sqlite_backup("/no such directory", backup, &census), -ENOENT);
}

/* A store starts from the copy alone, in an empty directory. */
static void check_restored(const struct content *expected, const char *instance_id) {
        struct disk restored;
        uint8_t *bytes;
        size_t length = disk_read(&disk, "backup.db", &bytes);
        struct stat status;

        cr_assert_eq(stat(backup, &status), 0);
        cr_expect_eq(status.st_mode & 0777, 0600);
        cr_expect_not(disk_has(&disk, "backup.db-wal"));
        cr_expect_not(disk_has(&disk, "backup.db-shm"));

        disk_init_like(&restored, &disk);
        disk_write(&restored, DATABASE, bytes, length);
        free(bytes);
        cr_assert_eq(disk_open(&restored), 0);
        cr_expect(content_equal(&restored.loaded, expected));
        cr_expect_str_neq(restored.header.instance_id, instance_id);
        disk_deinit(&restored);
}

Test(storage_maintenance, backup_of_a_running_store) {
        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        check_restored(&disk.committed, disk.header.instance_id);
        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_maintenance, backup_of_a_stopped_store) {
        disk_close(&disk);
        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        check_restored(&disk.committed, disk.header.instance_id);
}

Test(storage_maintenance, backup_of_a_killed_store) {
        struct disk killed;

        disk_copy(&disk, &killed);
        cr_assert_eq(storage_sqlite_backup(killed.directory, backup, &census), 0);
        check_restored(&disk.committed, disk.header.instance_id);
        disk_check(&killed);
        disk_deinit(&killed);
}

Test(storage_maintenance, backup_does_not_overwrite_files) {
        uint8_t *bytes;

        disk_write(&disk, "backup.db", "precious", strlen("precious"));
        cr_expect_eq(storage_sqlite_backup(disk.directory, backup, &census), -EEXIST);
        cr_expect_eq(disk_read(&disk, "backup.db", &bytes), strlen("precious"));
        cr_expect(memcmp(bytes, "precious", strlen("precious")) == 0);
        free(bytes);
        cr_expect_eq(storage_sqlite_backup(disk.directory, "/no such directory/backup.db", &census),
                     -ENOENT);
}

/* The watermark of the directory is higher than the number of commits in the backup. */
Test(storage_maintenance, backup_can_replace_the_original) {
        struct content expected = { 0 };
        uint8_t *bytes;
        size_t length;

        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        content_copy(&expected, &disk.committed);
        disk_put(&disk, "later", "value");
        COMMIT(&disk);
        disk_close(&disk);

        length = disk_read(&disk, "backup.db", &bytes);
        disk_write(&disk, DATABASE, bytes, length);
        free(bytes);
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect(content_equal(&disk.loaded, &expected));
        content_deinit(&expected);
}

static void check_restored_directory(struct disk *restored) {
        struct stat status;
        char database[128];

        snprintf(database, sizeof(database), "%s/" DATABASE, restored->directory);
        cr_assert_eq(stat(database, &status), 0);
        cr_expect_eq(status.st_mode & 0777, 0600);
        cr_expect_not(disk_has(restored, DATABASE "-wal"));
        cr_expect_not(disk_has(restored, DATABASE "-shm"));
        cr_assert_eq(disk_open(restored), 0);
        cr_expect(content_equal(&restored->loaded, &disk.committed));
        cr_expect_str_neq(restored->header.instance_id, disk.header.instance_id);
}

Test(storage_maintenance, restore_into_an_empty_directory_or_a_new_one) {
        struct disk restored;

        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        for (int is_new = 0; is_new <= 1; is_new++) {
                disk_init_like(&restored, &disk);
                if (is_new)
                        cr_assert_eq(rmdir(restored.directory), 0);
                else
                        disk_write(&restored, "lock", "", 0);
                census = (struct storage_census){ 0 };
                cr_assert_eq(storage_sqlite_restore(backup, restored.directory, &census), 0);
                cr_expect_eq(census.n_entries, 30);
                check_restored_directory(&restored);
                disk_deinit(&restored);
        }
}

Test(storage_maintenance, restore_refuses_a_directory_in_use_or_not_empty) {
        struct disk other;
        uint64_t before;

        cr_assert_eq(storage_sqlite_backup(disk.directory, backup, &census), 0);
        cr_expect_eq(storage_sqlite_restore(backup, disk.directory, &census), -EBUSY);
        disk_close(&disk);
        before = disk_fingerprint(&disk);
        cr_expect_eq(storage_sqlite_restore(backup, disk.directory, &census), -ENOTEMPTY);
        cr_expect_eq(disk_fingerprint(&disk), before);

        disk_init(&other);
        disk_write(&other, "acknowledged", "", 0);
        cr_expect_eq(storage_sqlite_restore(backup, other.directory, &census), -ENOTEMPTY);
        cr_expect_not(disk_has(&other, DATABASE));
        disk_deinit(&other);
}

Test(storage_maintenance, restore_refuses_a_damaged_backup_and_leaves_no_database) {
        struct disk restored;

        disk_close(&disk);
        damage(&disk);
        cr_assert_eq(rename_database(), 0);
        disk_init_like(&restored, &disk);
        cr_expect_eq(storage_sqlite_restore(backup, restored.directory, &census), -EBADMSG);
        cr_expect_not(disk_has(&restored, DATABASE));
        cr_expect_eq(storage_sqlite_restore("/no such file", restored.directory, &census), -ENOENT);
        disk_deinit(&restored);
}

/*
 * Start a process that runs `act` when it reads a byte. Call before opening a database: a child
 * that inherits one would use the locks of its parent. Returns the descriptor to write the byte to.
 */
static int start_other(int (*act)(void), pid_t *ret_child) {
        int go[2];
        char byte;

        disk_close(&disk);
        cr_assert_eq(pipe(go), 0);
        *ret_child = fork();
        cr_assert(*ret_child >= 0);
        if (*ret_child == 0)
                _exit(read(go[0], &byte, 1) == 1 ? act() : 1);

        close(go[0]);
        cr_assert_eq(disk_open(&disk), 0);
        return go[1];
}

static int make_backup(void) {
        return -storage_sqlite_backup(disk.directory, backup, &census);
}

/* All keys of one commit have the same value. */
static void commit_all(int number) {
        char key[16], value[16];

        snprintf(value, sizeof(value), "%d", number);
        for (int i = 0; i < 30; i++) {
                snprintf(key, sizeof(key), "key-%d", i);
                disk_put(&disk, key, value);
        }
        COMMIT(&disk);
}

/*
 * Another process makes backups while this one commits. Each backup contains whole commits only,
 * and does not block commits.
 */
Test(storage_maintenance, backup_is_consistent) {
        int status, n_commits = 0, go;
        pid_t child;

        go = start_other(make_backup, &child);
        /* At least one commit exists even if the backup is faster than the next commit. */
        commit_all(n_commits++);
        cr_assert_eq(write(go, "", 1), 1);
        while (waitpid(child, &status, WNOHANG) == 0)
                commit_all(n_commits++);
        cr_assert_eq(status, 0);

        struct disk restored;
        uint8_t *bytes;
        size_t length = disk_read(&disk, "backup.db", &bytes);

        disk_init_like(&restored, &disk);
        disk_write(&restored, DATABASE, bytes, length);
        free(bytes);
        cr_assert_eq(disk_open(&restored), 0);
        cr_assert_eq(restored.loaded.n_lines, 35);
        for (size_t i = 1; i < 30; i++)
                cr_expect_eq(strcspn(restored.loaded.lines[i].text, " "),
                             strcspn(restored.loaded.lines[0].text, " "));
        for (size_t i = 1; i < 30; i++)
                cr_expect(strncmp(restored.loaded.lines[i].text, restored.loaded.lines[0].text,
                                  strcspn(restored.loaded.lines[0].text, " ")) == 0,
                          "%s, and %s", restored.loaded.lines[i].text, restored.loaded.lines[0].text);
        disk_deinit(&restored);
}

static sqlite3 *open_reader(const struct disk *at) {
        char path[128];
        sqlite3 *reader;

        snprintf(path, sizeof(path), "%s/" DATABASE, at->directory);
        cr_assert_eq(sqlite3_open(path, &reader), SQLITE_OK);
        cr_assert_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM entries", NULL, NULL, NULL), SQLITE_OK);
        return reader;
}

Test(storage_maintenance, readers_do_not_block_commits) {
        sqlite3 *reader = open_reader(&disk);

        disk.checkpoint_frames = 0;
        for (int i = 0; i < 300; i++) {
                disk_put(&disk, "key-1", i % 2 ? "odd" : "even");
                COMMIT(&disk);
        }
        cr_assert_eq(sqlite3_exec(reader, "SELECT * FROM entries; COMMIT", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(reader);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_maintenance, readers_do_not_block_the_start) {
        struct disk killed;
        sqlite3 *reader;

        disk_copy(&disk, &killed);
        reader = open_reader(&killed);
        disk_check(&killed);
        disk_put(&killed, "still", "works");
        COMMIT(&killed);
        sqlite3_close(reader);
        disk_close(&killed);
        disk_check(&killed);
        disk_deinit(&killed);
}

static int announced[2];

static int hold_the_lock(void) {
        char path[128];
        sqlite3 *writer;

        snprintf(path, sizeof(path), "%s/" DATABASE, disk.directory);
        if (sqlite3_open(path, &writer) != SQLITE_OK ||
            sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
            write(announced[1], "", 1) != 1)
                return 1;
        usleep(200000);
        return 0;
}

Test(storage_maintenance, waits_for_another_writer) {
        int status, go;
        char byte;
        pid_t child;

        cr_assert_eq(pipe(announced), 0);
        go = start_other(hold_the_lock, &child);
        cr_assert_eq(write(go, "", 1), 1);
        cr_assert_eq(read(announced[0], &byte, 1), 1);
        disk_put(&disk, "still", "works");
        COMMIT(&disk);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect_eq(status, 0);
        disk_close(&disk);
        disk_check(&disk);
}
