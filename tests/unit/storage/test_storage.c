/* SPDX-License-Identifier: Apache-2.0 */

/* Loading returns exactly the committed content, for all kinds of rows. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/outcome.h"
#include "storage/sqlite/sqlite.h"
#include "unit/storage/disk.h"
#include "unit/support/table.h"

#define MS INT64_C(1000000)

static struct disk disk;

static void setup(void) {
        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage, .init = setup, .fini = teardown);

/* Check the content after closing and opening, and after killing the process. */
static void check(void) {
        struct disk killed;

        disk_copy(&disk, &killed);
        disk_check(&killed);
        disk_deinit(&killed);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage, new_storage_is_empty_with_stable_digest_key_and_instance_id) {
        struct storage_header first = disk.header;

        cr_expect_eq(disk.loaded.n_lines, 0);
        cr_expect_neq(memcmp(&first.digest_key, &(struct hash_key){ 0 }, sizeof(struct hash_key)), 0);
        cr_expect_eq(strlen(first.instance_id), sizeof(first.instance_id) - 1);
        cr_expect_eq(first.clock.wall_ms, 0);
        check();
        cr_expect_eq(memcmp(&disk.header.digest_key, &first.digest_key, sizeof(struct hash_key)), 0);
        cr_expect_str_eq(disk.header.instance_id, first.instance_id);
}

Test(storage, each_directory_has_its_own_digest_key_and_instance_id) {
        struct disk other;

        disk_init(&other);
        cr_assert_eq(disk_open(&other), 0);
        cr_expect_neq(memcmp(&other.header.digest_key, &disk.header.digest_key, sizeof(struct hash_key)), 0);
        cr_expect_str_neq(other.header.instance_id, disk.header.instance_id);
        disk_deinit(&other);
}

static const struct {
        const char *name;
        struct setting setting;
} settings[] = {
        { "text", { .key = S("key"), .value = S("value") } },
        { "an empty value", { .key = S("key"), .value = S("") } },
        { "text beyond ASCII", { .key = S("sch\xC3\xBCssel"), .value = S("\xF0\x9F\x98\x80") } },
        { "not UTF-8", { .key = S("\xFF\xFE"), .value = S("\x80") } },
        { "NUL", { .key = S("a\0b"), .value = S("\0") } },
        { "characters with a meaning in SQL",
          { .key = S("'; DROP TABLE entries; --"), .value = S("\"'`\\%_") } },
        { "a number's text", { .key = S("1"), .value = S("1.0") } },
        { "a deadline", { .key = S("key"), .value = S("value"), .deadline_ns = 1234567 * MS } },
        { "a deadline that has passed", { .key = S("key"), .value = S("value"), .deadline_ns = 999 * MS } },
        { "a token",
          { .key = S("key"), .value = S("value"), .fence = { 1696374425000, 7, S("client-1") } } },
        { "the largest token",
          { .key = S("key"), .value = S("value"), .fence = { INT64_MAX, UINT64_MAX, S("\xC3\xBC\x01") } } },
        { "the smallest token", { .key = S("key"), .value = S("value"), .fence = { 0, 0, S("n") } } },
        { "a token of a node with NUL",
          { .key = S("key"), .value = S("value"), .fence = { 5, 5, S("a\0b") } } },
        { "all fields",
          { .key = S("\0"), .value = S("\0\0"), .deadline_ns = 5000 * MS, .fence = { 5, 5, S("n") } } },
};

Test(storage, stores_entries_unchanged) {
        for (size_t i = 0; i < N_ROWS(settings); i++) {
                struct disk one;

                disk_init(&one);
                cr_assert_eq(disk_open(&one), 0, ROW(settings, i));
                disk_set_as(&one, settings[i].setting);
                COMMIT(&one);
                disk_close(&one);
                cr_assert_eq(disk_open(&one), 0, ROW(settings, i));
                cr_expect(content_equal(&one.loaded, &one.committed), ROW(settings, i));
                disk_deinit(&one);
        }
}

Test(storage, distinguishes_text_from_the_same_bytes_with_nul) {
        disk_put(&disk, "a", "text");
        disk_set(&disk, S("a\0"), S("blob"));
        disk_set(&disk, S(""), S("the engine rejects an empty key, the storage accepts it"));
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 3);
        check();
}

Test(storage, stores_large_values) {
        size_t length = 5 << 20;
        uint8_t *bytes = malloc(length);

        for (size_t i = 0; i < length; i++)
                bytes[i] = (uint8_t)(i * 7 + i / 251);
        disk_set(&disk, S("binary"), (struct slice){ bytes, length });
        memset(bytes, 'x', length);
        disk_set(&disk, S("text"), (struct slice){ bytes, length });
        disk_set(&disk, (struct slice){ bytes, 65000 }, S("a long key"));
        COMMIT(&disk);
        check();

        disk_put(&disk, "text", "short again");
        COMMIT(&disk);
        check();
        free(bytes);
}

Test(storage, later_change_of_a_key_in_a_batch_counts) {
        disk_put(&disk, "k", "one");
        disk_put(&disk, "k", "two");
        disk_put(&disk, "gone", "v");
        disk_remove(&disk, S("gone"));
        disk_put(&disk, "back", "one");
        disk_remove(&disk, S("back"));
        disk_put(&disk, "back", "two");
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 2);
        check();

        disk_remove(&disk, S("k"));
        disk_put(&disk, "k", "three");
        disk_put(&disk, "back", "three");
        disk_remove(&disk, S("back"));
        COMMIT(&disk);
        check();
}

Test(storage, does_not_store_transient_entries) {
        disk_put(&disk, "kept", "v");
        disk_put(&disk, "was", "v");
        disk_set_as(&disk, (struct setting){ .key = S("never"), .value = S("v"), .is_transient = true });
        COMMIT(&disk);
        disk_set_as(&disk, (struct setting){ .key = S("was"), .value = S("w"), .is_transient = true });
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 1);
        check();

        disk_put(&disk, "was", "kept again");
        COMMIT(&disk);
        check();
}

Test(storage, removing_an_unknown_key_is_harmless) {
        disk_remove(&disk, S("never was"));
        COMMIT(&disk);
        check();
}

Test(storage, stores_registrations) {
        disk_watch(&disk, S("c"), S("k"), 0);
        disk_watch(&disk, S("c"), S("l"), 7);
        disk_watch(&disk, S("d"), S("k"), UINT64_MAX);
        disk_watch(&disk, S("\xFF"), S("\0"), 1);
        COMMIT(&disk);
        check();

        disk_unwatch(&disk, S("c"), S("k"));
        disk_unwatch(&disk, S("\xFF"), S("\0"));
        disk_unwatch(&disk, S("c"), S("l"));
        disk_watch(&disk, S("c"), S("l"), 8);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 2);
        check();
}

Test(storage, stores_replies_by_number) {
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 5000 * MS);
        disk_reply(&disk, INT64_MAX / 2, OUTCOME_NOTHING, (struct version){ 0 }, 6000 * MS);
        disk_reply(&disk, 7, OUTCOME_DELETED, (struct version){ 1, INT32_MAX }, 7000 * MS);
        COMMIT(&disk);
        check();

        disk_reply(&disk, 7, OUTCOME_CONDITION_NOT_MET, disk.clock, 8000 * MS);
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 8000 * MS);
        disk_reply(&disk, 1, OUTCOME_DELETED, disk.clock, 9000 * MS);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 3);
        check();
}

Test(storage, removes_dropped_and_forgotten_replies) {
        for (uint64_t number = 1; number <= 9; number++)
                disk_reply(&disk, number, OUTCOME_DONE, disk.clock, 5000 * MS);
        COMMIT(&disk);

        disk_drop_reply(&disk, 7);
        disk_drop_reply(&disk, 70); /* not stored: the commit that added it has failed */
        disk_forget_replies(&disk, 4);
        disk_reply(&disk, 10, OUTCOME_DONE, disk.clock, 5000 * MS);
        disk_drop_reply(&disk, 10);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
}

/* So a commit after a long time without one is not slow. */
Test(storage, removes_many_forgotten_replies_in_several_commits) {
        static struct row rows[5000];
        struct storage_batch batch = { .rows = rows, .n_rows = N_ROWS(rows), .now = disk.now };
        size_t n_commits = 0;

        for (uint64_t i = 0; i < N_ROWS(rows); i++)
                rows[i] = (struct row){ .type = ROW_REPLY,
                                        .reply = { .number = i + 1, .deadline_ns = 5000 * MS } };
        cr_assert_eq(storage_commit(disk.storage, &batch), 0);

        batch = (struct storage_batch){ .now = disk.now, .forgotten_reply = N_ROWS(rows) };
        do {
                cr_assert_eq(storage_commit(disk.storage, &batch), 0);
                disk_close(&disk);
                cr_assert_eq(disk_open(&disk), 0);
                n_commits++;
        } while (disk.loaded.n_lines > 0);
        cr_expect_eq(n_commits, 5);
}

Test(storage, stores_every_outcome_that_is_remembered) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++)
                if (outcome != OUTCOME_VALUE && outcome != OUTCOME_PAGE)
                        disk_reply(&disk, 1 + outcome, outcome, disk.clock, 5000 * MS);
        COMMIT(&disk);
        check();
}

Test(storage, does_not_load_expired_replies) {
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 1500 * MS);
        disk_reply(&disk, 2, OUTCOME_DONE, disk.clock, 1501 * MS);
        COMMIT(&disk);
        disk_close(&disk);

        disk.now.mono_ns += 500 * MS;
        disk.now.wall_ms += 500 + 1; /* rounded up */
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect_eq(disk.loaded.n_lines, 1);
        cr_expect_str_eq(disk.loaded.lines[0].name, "reply 0000000000000002");
}

Test(storage, stores_the_clock_and_the_number_of_disconnects) {
        disk.clock = (struct version){ DISK_WALL_MS + 60000, 12345 };
        disk.disconnect_epoch = 17;
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.header.clock.wall_ms, DISK_WALL_MS + 60000);
        cr_expect_eq(disk.header.clock.counter, 12345);
        cr_expect_eq(disk.header.disconnect_epoch, 17);
}

Test(storage, keeps_many_batches_of_many_rows) {
        char key[16], value[64];

        for (int i = 0; i < 100; i++) {
                for (int j = 0; j < 30; j++) {
                        snprintf(key, sizeof(key), "key-%d", (i * 31 + j * 17) % 500);
                        snprintf(value, sizeof(value), "value of batch %d, row %d", i, j);
                        if (j % 7 == 6)
                                disk_remove(&disk, slice_from_string(key));
                        else
                                disk_put(&disk, key, value);
                }
                disk_reply(&disk, 1 + (uint64_t)i % 40, OUTCOME_DONE, disk.clock, 5000 * MS);
                COMMIT(&disk);
        }
        check();
}

/* Of the present directory. */
static void remove_files(void) {
        cr_assert_eq(unlink("statestored.db") | unlink("lock"), 0);
        cr_assert_eq(unlink("statestored.db-wal") | unlink("statestored.db-shm"), 0);
}

Test(storage, creates_a_private_directory) {
        char path[80];
        struct stat status;

        disk_close(&disk);
        snprintf(path, sizeof(path), "%s/statestored.db", disk.directory);
        cr_assert_eq(stat(path, &status), 0);
        cr_expect_eq(status.st_mode & 0777, 0600);

        snprintf(path, sizeof(path), "%s/new", disk.directory);
        cr_assert_eq(storage_sqlite_open(&disk.storage, path), 0);
        cr_assert_eq(stat(path, &status), 0);
        cr_expect_eq(status.st_mode & 0777, 0700);
        disk_close(&disk);
        cr_assert_eq(chdir(path), 0);
        remove_files();
        cr_assert_eq(rmdir(path), 0);
}

Test(storage, opens_directories_with_any_name) {
        char path[128];

        disk_close(&disk);
        snprintf(path, sizeof(path), "/%s/100%% \xC3\xBC?mode=ro#x", disk.directory);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(storage_sqlite_open(&disk.storage, path), 0);
                disk_close(&disk);
        }
        cr_assert_eq(chdir(path), 0);
        remove_files();
        cr_assert_eq(rmdir(path), 0);
}

Test(storage, stores_notifications_until_they_are_delivered) {
        disk_put(&disk, "k", "one");
        disk_notify(&disk, S("k"), S("c"));
        disk_set(&disk, S("\xFF"), S(""));
        disk_notify(&disk, S("\xFF"), S("\0\1"));
        disk_remove(&disk, S("k"));
        disk_notify(&disk, S("k"), S("c, d"));
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
        cr_expect_eq(disk.header.notification_sequence, 3);

        disk_put(&disk, "k", "two");
        disk_notify(&disk, S("k"), S("c"));
        disk_deliver(&disk, 2);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
        cr_expect_eq(disk.header.notification_sequence, 4);
}

Test(storage, continues_sequences_of_notifications_when_all_are_delivered) {
        disk_put(&disk, "k", "one");
        disk_notify(&disk, S("k"), S("c"));
        COMMIT(&disk);
        disk_deliver(&disk, 1);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 1);
        check();
        cr_expect_eq(disk.header.notification_sequence, 1);
}

Test(storage, reports_progress_of_loading) {
        static struct row rows[1000];
        struct storage_batch batch = { .rows = rows, .n_rows = N_ROWS(rows), .now = disk.now };

        for (uint32_t i = 0; i < 250; i++) {
                for (uint32_t j = 0; j < N_ROWS(rows); j++)
                        rows[j] = (struct row){ .type = ROW_REPLY,
                                                .reply = { .number = i * 1000 + j + 1, .deadline_ns = 1 } };
                cr_assert_eq(storage_commit(disk.storage, &batch), 0);
        }
        disk_close(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        cr_expect_eq(disk.n_progress, 200000);
}

Test(outcome_names, exist_for_every_outcome_and_are_unique) {
        for (enum outcome outcome = 0; outcome < N_OUTCOMES; outcome++) {
                enum outcome read = N_OUTCOMES;

                cr_assert_eq(outcome_from_name(slice_from_string(outcome_name(outcome)), &read), 0);
                cr_expect_eq(read, outcome);
        }
}

Test(outcome_names, unknown_names_are_rejected) {
        enum outcome outcome;

        cr_expect_eq(outcome_from_name(S(""), &outcome), -EINVAL);
        cr_expect_eq(outcome_from_name(S("done "), &outcome), -EINVAL);
        cr_expect_eq(outcome_from_name(S("DONE"), &outcome), -EINVAL);
}

Test(volatile_storage, stores_nothing_and_never_blocks) {
        struct storage_batch batch = { 0 };
        struct storage *storage;

        cr_assert_eq(storage_memory_new(&storage), 0);
        cr_expect(storage->operations->is_volatile);
        cr_expect_eq(storage_commit(storage, &batch), 0);
        cr_expect_not(storage_needs_commit(storage, (struct now){ INT64_MAX, 0 }));
        cr_expect_null(storage_close(storage));
        cr_expect_null(storage_close(NULL));
}

Test(storage, missing_watermark_renews_the_instance_id) {
        char instance_id[sizeof(disk.header.instance_id)];

        disk_put(&disk, "k", "v");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
        memcpy(instance_id, disk.header.instance_id, sizeof(instance_id));
        disk_close(&disk);
        disk_check(&disk);
        cr_expect_str_eq(disk.header.instance_id, instance_id);

        disk_close(&disk);
        disk_unlink(&disk, "acknowledged");
        disk_check(&disk);
        cr_expect_str_neq(disk.header.instance_id, instance_id);
}
