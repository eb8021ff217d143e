/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each system call below SQLite fails once, or fails from then on, during commits. Acknowledged
 * commits are present afterwards, and rejected ones are not, whether the process is killed or stops
 * normally. After an uncertain commit it only ends.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/outcome.h"
#include "support/fault_vfs.h"
#include "unit/storage/disk.h"
#include "unit/support/capture.h"
#include "unit/support/table.h"

#define N_COMMITS         9
#define CHECKPOINT_FRAMES 12 /* small, so that the log is checkpointed and restarted a few times */

/* Number of commits by result, in all runs with one fault. */
struct tally {
        unsigned n_done, n_no_room, n_no_memory, n_errors, n_stale, n_not_opened;
};

/* Each commit writes other pages; some write many. */
static void make_changes(struct disk *disk, int i) {
        static char large[20000];
        char key[16];

        memset(large, 'a' + i, sizeof(large));
        for (int j = 0; j <= i % 3; j++) {
                snprintf(key, sizeof(key), "key-%d", (i * 5 + j) % 7);
                disk_put(disk, key, i % 2 ? "odd" : "even");
        }
        if (i % 3 == 1)
                disk_set(disk, S("large"), (struct slice){ (uint8_t *)large, sizeof(large) });
        if (i % 3 == 2)
                disk_remove(disk, S("large"));
        if (i % 4 == 0)
                disk_watch(disk, (struct slice){ (uint8_t *)large, 3 }, S("key-1"), (uint64_t)i);
        disk_reply(disk, 1 + (uint64_t)i % 4, OUTCOME_DONE, disk->clock, INT64_MAX / 2 / 1000000 * 1000000);
}

static void count(struct tally *tally, int r) {
        switch (r) {
        case 0:
        case STORAGE_FULL:
                tally->n_done++;
                break;
        case -ENOSPC:
                tally->n_no_room++;
                break;
        case -ENOMEM:
                tally->n_no_memory++;
                break;
        case -EIO:
                tally->n_errors++;
                break;
        case -ESTALE:
                tally->n_stale++;
                break;
        default:
                cr_assert_fail("storage_commit() returned %d", r);
        }
}

/* Commit until all is done or a result is uncertain. Returns true if it is uncertain. */
static bool commit_all(struct disk *disk, struct tally *tally) {
        for (int i = 3; i < N_COMMITS; i++) {
                int r;

                make_changes(disk, i);
                r = disk_commit(disk);
                count(tally, r);
                if (r == -ESTALE)
                        return true;
        }
        return false;
}

/* Whether the store was closed before the faults (then its log restarts) or killed. */
static bool is_closed;

/* Open the directory. A failure must be logged. */
static int open_logged(struct disk *disk) {
        struct capture capture;
        char *text;
        int r;

        capture_start(&capture, STDERR_FILENO);
        r = disk_open(disk);
        text = capture_end(&capture);
        if (r < 0)
                cr_assert_not_null(strstr(text, disk->directory), "opening gave %d, and logged \"%s\"", r,
                                   text);
        free(text);
        return r;
}

/* Returns false if there are fewer than nth calls. */
static bool run(struct disk *original, const struct fault *fault, unsigned nth, bool lasts,
                struct tally *tally) {
        bool is_uncertain = false, has_failed;
        struct disk disk, killed;
        int r;

        disk_copy(original, &disk);
        fault_vfs_fail(fault, nth, lasts);
        r = open_logged(&disk);
        if (r == 0)
                is_uncertain = commit_all(&disk, tally);
        else
                tally->n_not_opened++;
        cr_assert(r == 0 || r == -EIO || r == -ENOSPC || (r == -EBADMSG && fault->call == FAULT_READ),
                  "opening gave %d", r);

        disk_copy(&disk, &killed);
        if (!is_uncertain)
                disk_close(&disk);
        has_failed = fault_vfs_clear();

        disk_check_like(&killed, &disk, is_uncertain);
        disk_deinit(&killed);
        if (!is_uncertain)
                disk_check_like(&disk, &disk, false);
        disk_deinit(&disk);
        return has_failed;
}

static struct tally run_all(const struct fault *fault, bool lasts) {
        struct tally tally = { 0 };
        struct disk original;
        unsigned nth = 0;

        disk_init(&original);
        original.checkpoint_frames = CHECKPOINT_FRAMES;
        cr_assert_eq(disk_open(&original), 0);
        for (int i = 0; i < 3; i++) {
                make_changes(&original, i);
                COMMIT(&original);
        }

        if (is_closed)
                disk_close(&original);
        do {
                nth++;
        } while (run(&original, fault, nth, lasts, &tally));

        disk_deinit(&original);
        fprintf(stderr, "%s, %s: %u calls; %u done, %u no room, %u errors, %u stale, %u not opened\n",
                fault->name, lasts ? "and all after it" : "once", nth - 1, tally.n_done, tally.n_no_room,
                tally.n_errors, tally.n_stale, tally.n_not_opened);
        cr_assert_gt(nth, 1, "no call was intercepted");
        return tally;
}

static void setup(void) {
        log_set_level(LOG_ERROR);
        fault_vfs_register();
}

TestSuite(storage_faults, .init = setup, .timeout = 3600);

static const struct fault no_room = { .name = "no room", .call = FAULT_WRITE, .code = SQLITE_FULL };
static const struct fault little_room = { .name = "disk full after half a write",
                                          .call = FAULT_WRITE,
                                          .code = SQLITE_FULL,
                                          .does = FAULT_DOES_HALF };
static const struct fault bad_write = { .name = "a write error",
                                        .call = FAULT_WRITE,
                                        .code = SQLITE_IOERR_WRITE };
static const struct fault half_write = {
        .name = "half a write", .call = FAULT_WRITE, .code = SQLITE_IOERR_WRITE, .does = FAULT_DOES_HALF
};
static const struct fault false_write = { .name = "a complete write that reports an error",
                                          .call = FAULT_WRITE,
                                          .code = SQLITE_IOERR_WRITE,
                                          .does = FAULT_DOES_ALL };
static const struct fault bad_sync = { .name = "a sync error",
                                       .call = FAULT_SYNC,
                                       .code = SQLITE_IOERR_FSYNC };
static const struct fault bad_read = { .name = "a read error",
                                       .call = FAULT_READ,
                                       .code = SQLITE_IOERR_READ };

/* After one failed write the commit is repeated, and succeeds. */
Test(storage_faults, commit_without_room_fails) {
        struct tally once = run_all(&no_room, false), lasting = run_all(&no_room, true);

        cr_expect_gt(once.n_done, 0);
        cr_expect_eq(once.n_no_room, 0);
        cr_expect_gt(lasting.n_no_room, 0);
        cr_expect_eq(once.n_errors + once.n_stale + lasting.n_errors + lasting.n_stale, 0);
}

Test(storage_faults, commit_with_room_for_half_of_it_fails) {
        struct tally once = run_all(&little_room, false), lasting = run_all(&little_room, true);

        cr_expect_eq(once.n_no_room, 0);
        cr_expect_gt(lasting.n_no_room, 0);
        cr_expect_eq(once.n_errors + lasting.n_errors, 0);
}

/* SQLite reports these errors as write errors, and ENOSPC as SQLITE_FULL. */
Test(storage_faults, quota_and_file_size_limit_count_as_no_room) {
        static const struct fault limits[] = {
                { .name = "no quota", .call = FAULT_WRITE, .code = SQLITE_IOERR_WRITE, .error = EDQUOT },
                { .name = "file size limit",
                  .call = FAULT_WRITE,
                  .code = SQLITE_IOERR_WRITE,
                  .error = EFBIG },
                { .name = "no room", .call = FAULT_WRITE, .code = SQLITE_IOERR_WRITE, .error = ENOSPC },
        };

        for (size_t i = 0; i < N_ROWS(limits); i++) {
                struct tally lasting = run_all(&limits[i], true);

                cr_expect_gt(lasting.n_no_room, 0, ROW(limits, i));
                cr_expect_eq(lasting.n_errors + lasting.n_stale, 0, ROW(limits, i));
        }
}

static void expect_uncertain(const struct fault *fault) {
        struct tally once = run_all(fault, false), lasting = run_all(fault, true);

        cr_expect_gt(once.n_stale, 0, "%s", fault->name);
        cr_expect_gt(lasting.n_stale, 0, "%s", fault->name);
        cr_expect_eq(once.n_errors + once.n_no_room + lasting.n_errors + lasting.n_no_room, 0, "%s",
                     fault->name);
}

/* The log may contain the complete commit: see false_write. */
Test(storage_faults, write_error_makes_the_commit_uncertain) {
        expect_uncertain(&bad_write);
        expect_uncertain(&half_write);
        expect_uncertain(&false_write);
}

Test(storage_faults, write_error_in_a_restarted_log_makes_the_commit_uncertain) {
        is_closed = true;
        expect_uncertain(&false_write);
}

Test(storage_faults, sync_error_makes_the_commit_uncertain) {
        expect_uncertain(&bad_sync);
}

static const struct fault others[] = {
        { .name = "an error of ftruncate", .call = FAULT_TRUNCATE, .code = SQLITE_IOERR_TRUNCATE },
        { .name = "an error of fstat", .call = FAULT_SIZE, .code = SQLITE_IOERR_FSTAT },
        { .name = "an error of open", .call = FAULT_OPEN, .code = SQLITE_CANTOPEN },
        { .name = "an error of unlink", .call = FAULT_DELETE, .code = SQLITE_IOERR_DELETE },
};

Test(storage_faults, other_errors_lose_no_data) {
        for (size_t i = 0; i < N_ROWS(others); i++) {
                struct tally once = run_all(&others[i], false), lasting = run_all(&others[i], true);

                cr_expect_eq(once.n_stale + lasting.n_stale, 0, ROW(others, i));
        }
}

static const struct fault *const makings[] = { &no_room, &little_room, &bad_write, &bad_sync, &bad_read };

/* Create the database, and check what the next start finds if the process is killed then. */
static int create(struct disk *disk, bool *ret_has_failed) {
        struct disk killed;
        int r;

        r = disk_load(disk);
        if (r == 0)
                r = storage_lead(disk->storage, &disk->header);
        disk_copy(disk, &killed);
        *ret_has_failed = fault_vfs_clear();
        disk_check_like(&killed, disk, false);
        if (r == 0)
                cr_expect_str_eq(killed.header.instance_id, disk->header.instance_id);
        disk_deinit(&killed);
        return r;
}

/* A failed start leaves a directory in which the next start creates the database. */
Test(storage_faults, database_is_created_atomically) {
        for (size_t i = 0; i < N_ROWS(makings); i++) {
                unsigned nth = 1, n_failed = 0;
                bool has_failed;

                do {
                        struct disk disk;

                        disk_init(&disk);
                        fault_vfs_fail(makings[i], nth++, true);
                        n_failed += create(&disk, &has_failed) < 0;
                        if (disk.storage)
                                disk_close(&disk);
                        disk_check_like(&disk, &disk, false);
                        disk_deinit(&disk);
                } while (has_failed);
                cr_expect_gt(n_failed, 2, "row %zu: %s", i, makings[i]->name);
        }
}

Test(storage_faults, read_error_fails_without_damage) {
        struct tally once = run_all(&bad_read, false), lasting = run_all(&bad_read, true);

        cr_expect_gt(once.n_not_opened, 0);
        cr_expect_eq(once.n_stale + once.n_no_room + lasting.n_stale + lasting.n_no_room, 0);
}

#define MEMORY_STEP    64
#define MEMORY_ENTRIES 20
#define MEMORY_VALUE   10000

/* Commit with this many bytes of memory for SQLite, then with all memory. */
static void commit_with_memory(int64_t n_bytes, struct disk *original, struct tally *tally) {
        static uint8_t value[MEMORY_VALUE];
        struct disk disk, killed;
        char key[16];
        int r;

        disk_copy(original, &disk);
        cr_assert_eq(disk_open(&disk), 0);
        for (int i = 0; i < MEMORY_ENTRIES; i++) {
                snprintf(key, sizeof(key), "key-%d", i);
                disk_set(&disk, slice_from_string(key), (struct slice){ value, sizeof(value) });
        }
        sqlite3_hard_heap_limit64(sqlite3_memory_used() + n_bytes);
        r = disk_commit(&disk);
        sqlite3_hard_heap_limit64(0);
        count(tally, r);

        disk_copy(&disk, &killed);
        disk_check_like(&killed, &disk, r == -ESTALE);
        disk_deinit(&killed);
        if (r != -ESTALE) {
                disk_put(&disk, "later", "v");
                COMMIT(&disk);
                disk_close(&disk);
                disk_check(&disk);
        }
        disk_deinit(&disk);
}

/* Without memory before COMMIT nothing is stored; at COMMIT it is unknown. */
Test(storage_faults, commit_without_memory_fails_or_is_uncertain) {
        struct tally tally = { 0 };
        struct disk original;

        disk_init(&original);
        cr_assert_eq(disk_open(&original), 0);
        disk_put(&original, "small", "v");
        COMMIT(&original);
        for (int64_t n_bytes = MEMORY_STEP; tally.n_done == 0; n_bytes *= 2)
                commit_with_memory(n_bytes, &original, &tally);
        disk_deinit(&original);
        fprintf(stderr, "%u no memory, %u stale\n", tally.n_no_memory, tally.n_stale);
        cr_expect_gt(tally.n_no_memory, 0);
        cr_expect_eq(tally.n_errors + tally.n_no_room, 0);
}

/*
 * Extending the index of the log fails after the commit was synced: SQLite reports an error, but
 * the log contains the commit. The second error looks as if nothing could have been written.
 */
Test(storage_faults, commit_that_fails_after_its_sync_is_uncertain) {
        static const struct fault faults[] = {
                { .name = "no room for the index",
                  .call = FAULT_INDEX,
                  .code = SQLITE_IOERR_SHMSIZE,
                  .error = ENOSPC },
                { .name = "no memory for the index", .call = FAULT_INDEX, .code = SQLITE_NOMEM },
        };
        size_t length = 5 << 20;
        uint8_t *bytes = calloc(1, length);

        for (size_t i = 0; i < N_ROWS(faults); i++) {
                struct disk disk, killed;
                char key[] = "k0";

                disk_init(&disk);
                cr_assert_eq(disk_open(&disk), 0);
                disk_put(&disk, "small", "v");
                COMMIT(&disk);
                for (int j = 0; j < 4; j++, key[1]++)
                        disk_set(&disk, slice_from_string(key), (struct slice){ bytes, length });
                fault_vfs_fail(&faults[i], 1, true);
                cr_expect_eq(disk_commit(&disk), -ESTALE, ROW(faults, i));
                cr_expect(fault_vfs_clear());

                disk_copy(&disk, &killed);
                disk_check_like(&killed, &disk, true);
                cr_expect(content_has_entry(&killed.committed, S("k3")), ROW(faults, i));
                disk_deinit(&killed);
                disk_deinit(&disk);
        }
        free(bytes);
}
