/* SPDX-License-Identifier: Apache-2.0 */

/* A full disk, simulated by the file size limit: it needs no privilege, and the test can end it. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/outcome.h"
#include "unit/storage/disk.h"
#include "unit/support/capture.h"

#define ROOM      (200 << 10)
#define N_COMMITS 400

static struct disk disk;
static rlim_t no_limit;

static void limit(rlim_t length) {
        struct rlimit limits;

        cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limits), 0);
        if (!no_limit)
                no_limit = limits.rlim_cur;
        limits.rlim_cur = length;
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limits), 0);
}

static void setup(void) {
        log_set_level(LOG_ERROR);
        signal(SIGXFSZ, SIG_IGN);
        disk_init(&disk);
        disk.checkpoint_frames = 1000;
        cr_assert_eq(disk_open(&disk), 0);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_room, .init = setup, .fini = teardown);

static size_t length_of(const char *name) {
        uint8_t *bytes;
        size_t length = disk_read(&disk, name, &bytes);

        free(bytes);
        return length;
}

/* Repeated changes of the same rows do not make the files grow. */
Test(storage_room, file_size_is_bounded_for_constant_data) {
        limit(ROOM);
        for (int i = 0; i < N_COMMITS; i++) {
                disk_put(&disk, i % 3 ? "a" : "b", i % 2 ? "odd" : "even");
                disk_reply(&disk, 1 + (uint64_t)i % 10, OUTCOME_DONE, disk.clock, INT64_C(5000000000));
                COMMIT(&disk);
        }
        limit(no_limit);
        cr_expect_leq(length_of("statestored.db-wal"), ROOM);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_room, full_disk_fails_commits_until_there_is_room) {
        int n_committed = 0, n_refused = 0;
        struct disk killed;

        limit(ROOM);
        while (n_refused < 20) {
                char key[16], value[3000];
                int r;

                snprintf(key, sizeof(key), "key-%d", n_committed);
                memset(value, 'v', sizeof(value));
                disk_set(&disk, slice_from_string(key), (struct slice){ (uint8_t *)value, sizeof(value) });
                r = disk_commit(&disk);
                cr_assert(r == 0 || r == -ENOSPC, "%d", r);
                n_committed += r == 0;
                n_refused += r < 0;
        }
        cr_expect_gt(n_committed, 10);

        /* acknowledged commits are present, other ones are not */
        limit(no_limit);
        disk_copy(&disk, &killed);
        disk_check(&killed);
        disk_deinit(&killed);

        for (int i = 0; i < 20; i++) {
                disk_put(&disk, "there is", "room again");
                COMMIT(&disk);
        }
        disk_close(&disk);
        disk_check(&disk);
}

/* The log has been removed, and SQLite has no room for a new one and its index. */
Test(storage_room, start_on_a_full_disk_loads_and_commits_when_there_is_room) {
        disk_put(&disk, "key", "value");
        COMMIT(&disk);
        disk_close(&disk);

        limit(1);
        cr_assert_eq(disk_open(&disk), STORAGE_FULL);
        cr_expect(content_equal(&disk.loaded, &disk.committed));
        for (int i = 0; i < 2; i++) {
                disk_put(&disk, "key", "another value");
                cr_expect_eq(disk_commit(&disk), -ENOSPC);
        }

        limit(no_limit);
        disk_put(&disk, "key", "another value");
        COMMIT(&disk);
        disk_close(&disk);
        disk_check(&disk);
}

/* With large values, so that the log has pages that the file of the database lacks. */
Test(storage_room, removals_succeed_on_a_full_disk) {
        static uint8_t value[6000];
        int n_keys = 0, r;
        char key[16];

        limit(ROOM);
        do {
                snprintf(key, sizeof(key), "key-%d", n_keys++);
                disk_set(&disk, slice_from_string(key), (struct slice){ value, sizeof(value) });
                r = disk_commit(&disk);
        } while (r == 0);
        cr_assert_eq(r, -ENOSPC);
        cr_assert_gt(n_keys, 10);

        disk_remove(&disk, S("key-0"));
        cr_expect_eq(disk_commit(&disk), STORAGE_FULL, "there is no room to add something");
        for (int i = 1; i < n_keys - 1; i++) {
                snprintf(key, sizeof(key), "key-%d", i);
                disk_remove(&disk, slice_from_string(key));
                disk_reply(&disk, 1 + (uint64_t)i, OUTCOME_DONE, disk.clock, INT64_C(5000000000));
                cr_assert_geq(disk_commit(&disk), 0, "%s", key);
        }
        disk_put(&disk, "there is", "room again");
        COMMIT(&disk);
        limit(no_limit);
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_room, creation_on_a_full_disk_fails_with_the_remedy) {
        struct capture capture;
        struct disk other;
        char *text;

        disk_init(&other);
        capture_start(&capture, STDERR_FILENO);
        limit(4096); /* room for the message, but not for the tables */
        cr_expect_eq(disk_open(&other), -EIO);
        limit(no_limit);
        text = capture_end(&capture);
        cr_expect_not_null(strstr(text, "free space"), "%s", text);
        free(text);
        disk_deinit(&other);
}

Test(storage_room, usage_is_that_of_the_files_and_of_the_disk) {
        struct storage_usage usage;
        struct statvfs status;

        disk_put(&disk, "key", "value");
        COMMIT(&disk);
        cr_assert(storage_usage(disk.storage, &usage));
        cr_expect_eq(usage.n_database_bytes, length_of("statestored.db"));
        cr_expect_eq(usage.n_log_bytes, length_of("statestored.db-wal"));
        cr_expect_gt(usage.n_log_bytes, 0);
        cr_assert_eq(statvfs(disk.directory, &status), 0);
        cr_expect_eq(usage.n_disk_bytes, status.f_blocks * status.f_frsize);
        cr_expect_leq(usage.n_free_bytes, usage.n_disk_bytes);
}

Test(storage_room, log_space_is_reused) {
        disk_close(&disk);
        disk.checkpoint_frames = 50;
        cr_assert_eq(disk_open(&disk), 0);
        for (int i = 0; i < N_COMMITS; i++) {
                disk_put(&disk, i % 3 ? "a" : "b", i % 2 ? "odd" : "even");
                COMMIT(&disk);
        }
        cr_expect_leq(length_of("statestored.db-wal"), 60 * (4096 + 24));
        cr_expect_geq(length_of("statestored.db-wal"), 50 * (4096 + 24));
}
