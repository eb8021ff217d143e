/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names with the same number. The linker replaces the hash function (--wrap), so that the first half
 * of all digests is 0, as if they collided. In all other tests no numbers collide.
 */

#include <errno.h>

#include "base/log.h"
#include "hash/hash.h"
#include "unit/storage/disk.h"

struct digest __real_hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                                struct digest *ret_digests);
struct digest __wrap_hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                                struct digest *ret_digests);

struct digest __wrap_hash_parts(const struct hash_key *key, const struct slice *parts, size_t n_parts,
                                struct digest *ret_digests) {
        struct digest digest = __real_hash_parts(key, parts, n_parts, ret_digests);

        memset(digest.bytes, 0, sizeof(digest.bytes) / 2);
        return digest;
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

Test(storage_collisions, removing_other_names_is_harmless) {
        disk_remove(&disk, S("two"));
        disk_unwatch(&disk, S("another"), S("one"));
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 2);
}

Test(storage_collisions, the_same_names_are_replaced) {
        disk_put(&disk, "one", "a longer value");
        disk_watch(&disk, S("client"), S("one"), 2);
        COMMIT(&disk);
        check();
        cr_expect_eq(disk.loaded.n_lines, 2);
}
