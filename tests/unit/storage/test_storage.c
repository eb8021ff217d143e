/* SPDX-License-Identifier: Apache-2.0 */

/* Loading returns exactly the committed content, for all kinds of rows. */

#include <dirent.h>
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

static void expect_same_secrets(const struct state_header *a, const struct state_header *b) {
        cr_expect_arr_eq(&a->digest_key, &b->digest_key, sizeof(a->digest_key));
        cr_expect_arr_eq(&a->row_hash_key, &b->row_hash_key, sizeof(a->row_hash_key));
        cr_expect_arr_eq(&a->table_key, &b->table_key, sizeof(a->table_key));
        cr_expect_arr_eq(&a->token_key, &b->token_key, sizeof(a->token_key));
}

Test(storage, new_storage_is_empty_with_stable_secrets_and_instance_id) {
        struct state_header first = disk.header;

        cr_expect_eq(disk.loaded.n_lines, 0);
        cr_expect_neq(memcmp(&first.digest_key, &(struct hash_key){ 0 }, sizeof(struct hash_key)), 0);
        cr_expect_eq(strlen(first.instance_id), sizeof(first.instance_id) - 1);
        cr_expect_eq(first.clock.wall_ms, 0);
        check();
        expect_same_secrets(&disk.header, &first);
        cr_expect_str_eq(disk.header.instance_id, first.instance_id);
}

Test(storage, each_directory_has_its_own_secrets_and_instance_id) {
        struct disk other;

        disk_init(&other);
        cr_assert_eq(disk_open(&other), 0);
        cr_expect_arr_neq(&other.header.digest_key, &disk.header.digest_key, sizeof(disk.header.digest_key));
        cr_expect_arr_neq(&other.header.table_key, &disk.header.table_key, sizeof(disk.header.table_key));
        cr_expect_arr_neq(&other.header.token_key, &disk.header.token_key, sizeof(disk.header.token_key));
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

Test(storage, removes_entries_and_stores_them_again) {
        disk_put(&disk, "k", "one");
        disk_put(&disk, "gone", "v");
        disk_put(&disk, "back", "one");
        COMMIT(&disk);
        disk_put(&disk, "k", "two");
        disk_remove(&disk, S("gone"));
        disk_remove(&disk, S("back"));
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 1);
        check();

        disk_put(&disk, "back", "two");
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 2);
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
        disk_unwatch(&disk, S("never"), S("was"));
        disk_watch(&disk, S("c"), S("l"), 8);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 2);
        check();
}

Test(storage, stores_replies_by_number) {
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 5000 * MS);
        disk_reply(&disk, 7, OUTCOME_DELETED, (struct version){ 1, INT32_MAX }, 7000 * MS);
        disk_reply(&disk, INT64_MAX / 2, OUTCOME_NOTHING, (struct version){ 0 }, 6000 * MS);
        COMMIT(&disk);
        check();

        disk_reply(&disk, 1, OUTCOME_DELETED, disk.clock, 9000 * MS);
        disk_reply(&disk, 7, OUTCOME_CONDITION_NOT_MET, disk.clock, 8000 * MS);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 3);
        check();
}

Test(storage, stores_the_last_execution_of_each_place) {
        disk_execute(&disk, 256, disk.clock);
        disk_execute(&disk, INT64_MAX, (struct version){ 0 });
        disk_execute(&disk, 3, disk.clock);
        disk_execute(&disk, 259, disk.clock);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 3);
        check();

        disk_execute(&disk, 512, disk.clock);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 3);
        check();
}

Test(storage, removes_forgotten_replies) {
        for (uint64_t number = 1; number <= 9; number++)
                disk_reply(&disk, number, OUTCOME_DONE, disk.clock, 5000 * MS);
        COMMIT(&disk);

        disk_forget_reply(&disk, 7);
        disk_forget_reply(&disk, 70); /* not stored: the commit that added it has failed */
        disk_forget_replies(&disk, 4);
        disk_reply(&disk, 10, OUTCOME_DONE, disk.clock, 5000 * MS);
        disk_forget_reply(&disk, 10);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
}

/* So a commit after a long time without one is not slow. */
Test(storage, removes_many_forgotten_replies_in_several_commits) {
        static struct row replies[5000];
        struct change_set change_set = { .rows = replies, .n_rows = N_ROWS(replies) };
        size_t n_commits = 0;

        for (uint64_t i = 0; i < N_ROWS(replies); i++)
                replies[i] = (struct row){ .type = ROW_REPLY,
                                           .reply = { .number = i + 1, .forget_at_ms = DISK_WALL_MS } };
        change_set.header = disk.header;
        cr_assert_eq(storage_commit(disk.storage, &change_set), 0);

        change_set = (struct change_set){ .header = disk.header, .forgotten_up_to = N_ROWS(replies) };
        do {
                cr_assert_eq(storage_commit(disk.storage, &change_set), 0);
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

static void expect_header(const struct state_header *found, const struct state_header *expected) {
        cr_expect_eq(found->n_commits, expected->n_commits);
        cr_expect_str_eq(found->node_id, expected->node_id);
        expect_same_secrets(found, expected);
        cr_expect_str_eq(found->instance_id, expected->instance_id);
        cr_expect_eq(found->clock.wall_ms, expected->clock.wall_ms);
        cr_expect_eq(found->clock.counter, expected->clock.counter);
        cr_expect_eq(found->keys_may_be_lost, expected->keys_may_be_lost);
        cr_expect_eq(found->notification_sequence, expected->notification_sequence);
        cr_expect_eq(found->reading_ms, expected->reading_ms);
        cr_expect_eq(found->shift_ms, expected->shift_ms);
}

/* Check the header after killing the process, and after closing and opening. */
static void check_header(const struct state_header *expected) {
        struct disk killed;

        disk_copy(&disk, &killed);
        disk_check(&killed);
        expect_header(&killed.header, expected);
        disk_deinit(&killed);
        disk_close(&disk);
        disk_check(&disk);
        expect_header(&disk.header, expected);
}

static const struct {
        const char *name;
        struct state_header header; /* of a commit; the keys, the instance id and n_commits are added */
} headers[] = {
        { "only zeros", { 0 } },
        { "all fields",
          { .node_id = "a.node",
            .clock = { DISK_WALL_MS + 60000, 12345 },
            .keys_may_be_lost = true,
            .notification_sequence = 18,
            .reading_ms = 19,
            .shift_ms = -20 } },
        { "the largest values",
          { .clock = { INT64_MAX - 1, UINT32_MAX },
            .notification_sequence = INT64_MAX,
            .reading_ms = INT64_MAX,
            .shift_ms = INT64_MAX } },
        { "the smallest values", { .reading_ms = INT64_MIN, .shift_ms = INT64_MIN } },
};

Test(storage, stores_the_header_of_the_last_commit) {
        for (size_t i = 0; i < N_ROWS(headers); i++) {
                struct change_set change_set = { .header = headers[i].header };

                change_set.header.digest_key = disk.header.digest_key;
                memcpy(change_set.header.instance_id, disk.header.instance_id,
                       sizeof(disk.header.instance_id));
                change_set.header.n_commits = disk.header.n_commits + 1;
                cr_assert_eq(storage_commit(disk.storage, &change_set), 0, ROW(headers, i));
                check_header(&change_set.header);
        }
}

/* Only a commit stores the header of a storage that is not empty. */
Test(storage, lead_creates_the_storage_with_the_given_header) {
        struct state_header header;
        struct disk other;

        disk_init(&other);
        cr_assert_eq(disk_load(&other), 0);
        snprintf(other.header.node_id, sizeof(other.header.node_id), "first");
        header = other.header;
        cr_assert_eq(storage_lead(other.storage, &header), 0);
        disk_close(&other);

        cr_assert_eq(disk_load(&other), 0);
        expect_header(&other.header, &header);
        cr_expect_eq(other.n_loaded, 1);
        snprintf(other.header.node_id, sizeof(other.header.node_id), "second");
        cr_assert_eq(storage_lead(other.storage, &other.header), 0);
        disk_close(&other);

        cr_assert_eq(disk_load(&other), 0);
        expect_header(&other.header, &header);
        disk_deinit(&other);
}

/* Check that the directory has these files, in alphabetical order. */
static void expect_files(const struct disk *at, const char *expected) {
        struct buf found = { 0 };
        struct dirent **names;
        int n = scandir(at->directory, &names, NULL, alphasort);

        cr_assert_geq(n, 0);
        for (int i = 0; i < n; i++) {
                if (names[i]->d_name[0] != '.') {
                        buf_append_string(&found, names[i]->d_name);
                        buf_append_string(&found, " ");
                }
                free(names[i]);
        }
        free(names);
        buf_append(&found, "", 1);
        cr_expect_str_eq((const char *)found.data, expected);
        buf_deinit(&found);
}

Test(storage, loading_creates_only_an_empty_database_file_and_the_lock) {
        struct disk other;
        uint8_t *bytes;

        disk_init(&other);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(disk_load(&other), 0);
                cr_expect_eq(other.n_loaded, 0);
                expect_files(&other, "lock statestored.db ");
                cr_expect_eq(disk_read(&other, "statestored.db", &bytes), 0);
                free(bytes);
                disk_close(&other);
                expect_files(&other, "lock statestored.db ");
        }

        cr_assert_eq(disk_open(&other), 0);
        expect_files(&other, "acknowledged lock statestored.db statestored.db-shm statestored.db-wal ");
        disk_deinit(&other);
}

/* With a log, as a killed process leaves it, and without. */
Test(storage, loading_changes_nothing) {
        struct disk killed;

        disk_put(&disk, "k", "v");
        COMMIT(&disk);
        disk_copy(&disk, &killed);
        disk_close(&disk);
        for (int i = 0; i < 2; i++) {
                struct disk *at = i == 0 ? &killed : &disk;
                uint64_t before = disk_fingerprint(at);

                cr_assert_eq(disk_load(at), 0);
                cr_expect(content_equal(&at->loaded, &disk.committed));
                cr_expect_eq(disk_fingerprint(at), before);
                disk_close(at);
                cr_expect_eq(disk_fingerprint(at), before, "%d", i);
        }
        disk_check(&killed);
        disk_deinit(&killed);
}

static const int64_t times_ms[] = { INT64_MIN, -1, 0, 1, INT64_MAX - 1, EXPIRES_NEVER };

static int ignore_header(void *userdata, const struct state_header *header) {
        (void)userdata;
        (void)header;
        return 0;
}

static int expect_times(void *userdata, const struct row *row) {
        size_t *n_found = userdata;

        ++*n_found;
        if (row->type == ROW_ENTRY)
                cr_expect_eq(row->entry.expires_at_ms, times_ms[row->entry.key.data[0] - '0']);
        else
                cr_expect_eq(row->reply.forget_at_ms, times_ms[row->reply.number - 1]);
        return 0;
}

/* Also times that the timescale never gives. */
Test(storage, stores_times_unchanged) {
        struct row rows[2 * N_ROWS(times_ms)];
        struct change_set change_set = { .header = disk.header, .rows = rows, .n_rows = N_ROWS(rows) };
        size_t n_found = 0;
        struct storage_sink sink = { .header = ignore_header, .row = expect_times, .userdata = &n_found };

        for (size_t i = 0; i < N_ROWS(times_ms); i++) {
                rows[2 * i] = (struct row){ .type = ROW_ENTRY,
                                            .entry = { .key = { (const uint8_t *)"012345" + i, 1 },
                                                       .value = S("v"),
                                                       .expires_at_ms = times_ms[i] } };
                rows[2 * i + 1] = (struct row){ .type = ROW_REPLY,
                                                .reply = { .number = i + 1, .forget_at_ms = times_ms[i] } };
        }
        cr_assert_eq(storage_commit(disk.storage, &change_set), 0);
        disk_close(&disk);
        cr_assert_geq(storage_sqlite_open(&disk.storage, disk.directory), 0);
        cr_assert_eq(storage_load(disk.storage, &sink), 0);
        cr_expect_eq(n_found, 2 * N_ROWS(times_ms));
}

struct failing_sink {
        unsigned n_calls, fails_at;
};

static int count_call(struct failing_sink *failing) {
        return failing->n_calls++ == failing->fails_at ? -E2BIG : 0;
}

static int fail_at_header(void *userdata, const struct state_header *header) {
        (void)header;
        return count_call(userdata);
}

static int fail_at_row(void *userdata, const struct row *row) {
        (void)row;
        return count_call(userdata);
}

Test(storage, error_of_the_sink_ends_loading) {
        disk_put(&disk, "k", "v");
        disk_notify(&disk, S("recipients"));
        disk_watch(&disk, S("c"), S("k"), 1);
        disk_reply(&disk, 1, OUTCOME_DONE, disk.clock, 5000 * MS);
        COMMIT(&disk);

        for (unsigned i = 0; i <= 5; i++) {
                struct failing_sink failing = { .fails_at = i };
                struct storage_sink sink = { .header = fail_at_header,
                                             .row = fail_at_row,
                                             .userdata = &failing };

                disk_close(&disk);
                cr_assert_geq(storage_sqlite_open(&disk.storage, disk.directory), 0);
                cr_expect_eq(storage_load(disk.storage, &sink), i < 5 ? -E2BIG : 0);
                cr_expect_eq(failing.n_calls, i < 5 ? i + 1 : 5);
        }
        check();
}

Test(storage, keeps_many_commits_of_many_rows) {
        char key[16], value[64];

        for (int i = 0; i < 100; i++) {
                for (int j = 0; j < 30; j++) {
                        snprintf(key, sizeof(key), "key-%d", (i * 31 + j * 17) % 500);
                        snprintf(value, sizeof(value), "value of commit %d, row %d", i, j);
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
}

Test(storage, creates_a_private_directory) {
        char path[80];
        struct stat status;

        disk_close(&disk);
        snprintf(path, sizeof(path), "%s/statestored.db", disk.directory);
        cr_assert_eq(stat(path, &status), 0);
        cr_expect_eq(status.st_mode & 0777, 0600);

        snprintf(path, sizeof(path), "%s/new", disk.directory);
        cr_assert_geq(storage_sqlite_open(&disk.storage, path), 0);
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
                cr_assert_geq(storage_sqlite_open(&disk.storage, path), 0);
                disk_close(&disk);
        }
        cr_assert_eq(chdir(path), 0);
        remove_files();
        cr_assert_eq(rmdir(path), 0);
}

Test(storage, stores_notifications_until_they_are_acknowledged) {
        /* a key that was set and then deleted */
        disk_notify_as(&disk, (struct pending_notification){ .version = { DISK_WALL_MS, 0 },
                                                             .key = S("k"),
                                                             .value = S("one"),
                                                             .recipients = S("c") });
        disk_set(&disk, S("\xFF"), S(""));
        disk_notify(&disk, S("\0\1"));
        disk_remove(&disk, S("k"));
        disk_notify(&disk, S("c, d"));
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
        cr_expect_eq(disk.header.notification_sequence, 3);

        disk_put(&disk, "k", "two");
        disk_notify(&disk, S("c"));
        disk_deliver(&disk, 2);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 4);
        check();
        cr_expect_eq(disk.header.notification_sequence, 4);
}

Test(storage, continues_sequences_of_notifications_when_all_are_acknowledged) {
        disk_put(&disk, "k", "one");
        disk_notify(&disk, S("c"));
        COMMIT(&disk);
        disk_deliver(&disk, 1);
        COMMIT(&disk);
        cr_expect_eq(disk.committed.n_lines, 1);
        check();
        cr_expect_eq(disk.header.notification_sequence, 1);
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

Test(storage, waits_for_no_other_machine_and_limits_no_change_set) {
        cr_expect_not(storage_is_waiting(disk.storage));
        cr_expect_eq(storage_limits(disk.storage).entry_bytes, UINT64_MAX);
        cr_expect_eq(storage_limits(disk.storage).n_rows, SIZE_MAX);
        cr_expect_eq(storage_limits(disk.storage).n_bytes, SIZE_MAX);
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
