/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a commit reads and writes, in pages. A row costs what its own size costs, however large its
 * neighbours are in the database: the rows of other clients.
 */

#include <stdio.h>

#include "base/log.h"
#include "engine/outcome.h"
#include "support/fault_vfs.h"
#include "unit/storage/disk.h"
#include "unit/support/table.h"

#define PAGE_SIZE   4096
#define N_LARGE     20
#define LARGE_SIZE  (60 * 1024) /* of each large key, client id, and list of recipients */
#define VALUE_SIZE  (1 << 20)   /* of each large value */
#define N_SMALL     400         /* rows among the large ones */
#define NEVER_NS    (INT64_MAX / 2 / 1000000 * 1000000)
#define SMALL_PAGES 20 /* limit for a small row; a large neighbour has more than 15 pages, or 256 */

static struct disk disk;
static char large[N_LARGE][LARGE_SIZE], value[VALUE_SIZE];
static size_t n_bytes;

static bool count(void *userdata, const struct fault_event *event) {
        (void)userdata;
        if (event->call == FAULT_READ || event->call == FAULT_WRITE)
                n_bytes += event->length;
        return true;
}

/* Commit the rows with an empty page cache. Returns the number of pages read and written. */
static size_t n_pages_of_commit(void) {
        n_bytes = 0;
        fault_vfs_observe(count, NULL);
        COMMIT(&disk);
        fault_vfs_observe(NULL, NULL);
        return (n_bytes + PAGE_SIZE - 1) / PAGE_SIZE;
}

/* Close and open, so that the page cache is empty, and the log too. */
static void reopen(void) {
        disk_close(&disk);
        disk_check(&disk);
}

/*
 * The number with two digits is the first byte that differs: large and small names alternate in
 * every order.
 */
static struct slice large_name(size_t i) {
        memset(large[i], 'x', LARGE_SIZE);
        snprintf(large[i], LARGE_SIZE, "name-%02zu-large", i);
        large[i][strlen(large[i])] = 'x';
        return (struct slice){ (uint8_t *)large[i], LARGE_SIZE };
}

static struct slice small_name(size_t i) {
        static char names[N_SMALL][48];

        snprintf(names[i], sizeof(names[i]), "name-%02zu-small-%zu", i % N_LARGE, i / N_LARGE);
        return slice_from_string(names[i]);
}

static void add_large_rows(void) {
        for (size_t i = 0; i < N_LARGE; i++) {
                struct slice name = large_name(i);

                disk_set(&disk, name, S("a large key"));
                disk_set(&disk, (struct slice){ name.data, 40 },
                         (struct slice){ (uint8_t *)value, VALUE_SIZE });
                disk_notify(&disk, name);
                disk_watch(&disk, name, S("key"), i + 1);
                disk_watch(&disk, S("client"), name, i + 1);
                COMMIT(&disk);
        }
}

static void setup(void) {
        log_set_level(LOG_ERROR);
        fault_vfs_register();
        memset(value, 'v', sizeof(value));
        disk_init(&disk);
        disk.checkpoint_frames = INT32_MAX;
        cr_assert_eq(disk_open(&disk), 0);

        /* Notification 1 is small. */
        disk_put(&disk, "key", "value");
        disk_notify(&disk, S("recipients"));
        COMMIT(&disk);
        add_large_rows();
        for (size_t i = 0; i < N_SMALL; i++) {
                disk_set(&disk, small_name(i), S("small"));
                disk_watch(&disk, small_name(i), small_name(i), 1);
                if (i % 20 == 19)
                        COMMIT(&disk);
        }
        disk_reply(&disk, 7, OUTCOME_DONE, disk.clock, NEVER_NS);
        COMMIT(&disk);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_pages, .init = setup, .fini = teardown);

static void insert_key(void) {
        disk_put(&disk, "name-11-new", "small");
}

static void overwrite_key(void) {
        disk_set(&disk, small_name(11), S("another value"));
}

static void delete_key(void) {
        disk_remove(&disk, small_name(12));
}

static void insert_registration_of_client(void) {
        disk_watch(&disk, S("name-11-new"), S("key"), 1);
}

static void insert_registration_of_key(void) {
        disk_watch(&disk, S("client"), S("name-11-new"), 1);
}

static void overwrite_registration(void) {
        disk_watch(&disk, small_name(13), small_name(13), 2);
}

static void delete_registration(void) {
        disk_unwatch(&disk, small_name(15), small_name(15));
}

static void insert_reply(void) {
        disk_reply(&disk, 3, OUTCOME_DONE, disk.clock, NEVER_NS);
}

static void overwrite_reply(void) {
        disk_reply(&disk, 7, OUTCOME_DELETED, disk.clock, NEVER_NS);
}

static void insert_notification(void) {
        disk_set(&disk, small_name(16), S("notified"));
        disk_notify(&disk, S("recipients"));
}

static void remove_notification(void) {
        disk_deliver(&disk, 1);
}

static void nothing(void) {
}

static const struct {
        const char *name;
        void (*add)(void);
} small_rows[] = {
        { "nothing", nothing },
        { "insert a key", insert_key },
        { "overwrite a key", overwrite_key },
        { "delete a key", delete_key },
        { "insert a registration of a client", insert_registration_of_client },
        { "insert a registration of a key", insert_registration_of_key },
        { "overwrite a registration", overwrite_registration },
        { "delete a registration", delete_registration },
        { "insert a reply", insert_reply },
        { "overwrite a reply", overwrite_reply },
        { "insert a notification", insert_notification },
        { "remove a delivered notification", remove_notification },
};

Test(storage_pages, small_row_costs_the_same_beside_large_rows) {
        for (size_t i = 0; i < N_ROWS(small_rows); i++) {
                size_t n_pages;

                reopen();
                small_rows[i].add();
                n_pages = n_pages_of_commit();
                fprintf(stderr, "%s: %zu pages\n", small_rows[i].name, n_pages);
                cr_expect_leq(n_pages, SMALL_PAGES, "%s: %zu pages", small_rows[i].name, n_pages);
        }
}

/* The pages that rows of this size fill, with the pages of a small row. */
static size_t limit(size_t n_row_bytes) {
        return n_row_bytes / (PAGE_SIZE - 300) + SMALL_PAGES;
}

/* The former row is read, to free its pages; the new row is written. */
Test(storage_pages, large_row_costs_its_own_size) {
        struct slice key = { (uint8_t *)large[5], 40 }, bytes = { (uint8_t *)value, VALUE_SIZE - 1 };

        reopen();
        disk_set(&disk, S("name-12-new"), bytes);
        cr_expect_leq(n_pages_of_commit(), limit(VALUE_SIZE), "insert");
        reopen();
        disk_set(&disk, key, bytes);
        cr_expect_leq(n_pages_of_commit(), limit(2 * VALUE_SIZE), "overwrite");
        reopen();
        disk_remove(&disk, key);
        cr_expect_leq(n_pages_of_commit(), limit(VALUE_SIZE), "delete");
        reopen();
        disk_set(&disk, large_name(6), S("another"));
        cr_expect_leq(n_pages_of_commit(), limit(3 * LARGE_SIZE), "overwrite a large key");
        reopen();
        /*
         * The row is read twice, to compare its names and to free its pages: since SQLite 3.45 (option
         * DIRECT_OVERFLOW_READ) the first reading does not fill the page cache.
         */
        disk_unwatch(&disk, large_name(7), S("key"));
        cr_expect_leq(n_pages_of_commit(), limit(3 * LARGE_SIZE),
                      "delete a registration of a large client id");
        reopen();
        disk_deliver(&disk, 2);
        cr_expect_leq(n_pages_of_commit(), limit(VALUE_SIZE + LARGE_SIZE), "remove a large notification");
}
