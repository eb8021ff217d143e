/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows with the same hash. The linker replaces the hash functions (--wrap), so that all rows of a
 * table have the hash 0, as if their hashes collided. All other tests have hashes without
 * collisions.
 */

#include <errno.h>

#include "base/log.h"
#include "engine/hash.h"
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
        disk_watch(&disk, S("client"), S("one"), 1);
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

/* Clients cannot cause this: they do not know the hash key. */
Test(storage_collisions, the_commit_of_another_key_fails) {
        disk_put(&disk, "two", "2");
        cr_expect_eq(disk_commit(&disk), -EIO);
        check();
        disk_remove(&disk, S("one"));
        COMMIT(&disk);
        disk_put(&disk, "two", "2");
        COMMIT(&disk);
        check();
}

Test(storage_collisions, the_commit_of_another_registration_fails) {
        disk_watch(&disk, S("another"), S("one"), 1);
        cr_expect_eq(disk_commit(&disk), -EIO);
        check();
        disk_unwatch(&disk, S("client"), S("one"));
        disk_watch(&disk, S("another"), S("one"), 1);
        COMMIT(&disk);
        check();
}

Test(storage_collisions, the_same_names_are_replaced) {
        disk_put(&disk, "one", "a longer value");
        disk_watch(&disk, S("client"), S("one"), 2);
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 2);
}
