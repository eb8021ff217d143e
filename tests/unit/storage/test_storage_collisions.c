/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows with the same hash. The linker replaces the hash functions (--wrap), so that all rows of a
 * table have the hash 0, as if their hashes collided. All other tests have hashes without
 * collisions.
 */

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/hash.h"
#include "storage/sqlite/rows.h"
#include "unit/storage/disk.h"

uint64_t __wrap_hash_bytes(const struct hash_key *key, struct slice bytes);
struct digest __wrap_hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                                struct digest *ret_digests);

uint64_t __wrap_hash_bytes(const struct hash_key *key, struct slice bytes) {
        (void)key;
        (void)bytes;
        return 0;
}

struct digest __wrap_hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                                struct digest *ret_digests) {
        (void)key;
        (void)parts;
        (void)n_parts;
        (void)ret_digests;
        return (struct digest){ 0 };
}

static struct disk disk;

static void setup(void) {
        log_set_level(LOG_ERROR);
        disk_init(&disk);
        cr_assert_eq(disk_open(&disk), 0);
        disk_put(&disk, "one", "1");
        disk_put(&disk, "two", "2");
        disk_set(&disk, S("two\0"), S("a blob"));
        disk_watch(&disk, S("client"), S("one"), 1);
        disk_watch(&disk, S("client"), S("two"), 1);
        disk_watch(&disk, S("another"), S("one"), 1);
        COMMIT(&disk);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_collisions, .init = setup, .fini = teardown);

static void check(void) {
        disk_close(&disk);
        disk_check(&disk);
}

Test(storage_collisions, rows_with_the_same_hash_exist_side_by_side) {
        const struct hash_key hash_key = { { 1 } };

        cr_expect_eq(row_hash_of_key(&hash_key, S("one")), row_hash_of_key(&hash_key, S("two")));
        cr_expect_eq(row_hash_of_names(&hash_key, S("client"), S("one")),
                     row_hash_of_names(&hash_key, S("another"), S("two")));
        check();
        cr_expect_eq(disk.loaded.n_lines, 6);
}

/*
 * Without a collision of more than ROW_SLOTS keys by chance, no client can cause this: clients do
 * not know the hash key.
 */
Test(storage_collisions, commit_fails_without_a_free_slot) {
        char key[8];

        for (int i = 0; i < ROW_SLOTS - 3; i++) {
                snprintf(key, sizeof(key), "%d", i);
                disk_put(&disk, key, "value");
        }
        COMMIT(&disk);
        disk_put(&disk, "one more", "value");
        cr_expect_eq(disk_commit(&disk), -EIO);
        check();
        disk_remove(&disk, S("5"));
        disk_put(&disk, "one more", "value");
        COMMIT(&disk);
        check();
}

Test(storage_collisions, only_the_row_with_the_key_is_overwritten) {
        disk_put(&disk, "two", "a longer value");
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 6);
}

Test(storage_collisions, only_the_row_with_the_key_is_removed) {
        disk_remove(&disk, S("one"));
        COMMIT(&disk);
        check();
        disk_remove(&disk, S("two\0"));
        disk_put(&disk, "one", "again");
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 5);
}

Test(storage_collisions, only_the_registration_with_the_names_is_replaced_or_removed) {
        disk_unwatch(&disk, S("client"), S("one"));
        disk_watch(&disk, S("client"), S("two"), 2);
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 5);
}
