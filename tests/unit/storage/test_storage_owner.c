/* SPDX-License-Identifier: Apache-2.0 */

/* The files of a data directory belong to the owner of the directory, also if root has used it. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "storage/sqlite/maintenance.h"
#include "unit/storage/disk.h"

static struct disk disk;

/*
 * Without root, or without other users, the directory keeps its owner, and the tests only check
 * that all operations work.
 */
static void setup(void) {
        log_set_level(LOG_ERROR);
        disk_init(&disk);
        if (chown(disk.directory, 12345, 54321) < 0)
                cr_assert(errno == EPERM || errno == EINVAL);
}

static void teardown(void) {
        disk_deinit(&disk);
}

TestSuite(storage_owner, .init = setup, .fini = teardown);

/* Check the owner of each file. Returns the number of files. */
static size_t check_owner(const struct disk *at) {
        DIR *names = opendir(at->directory);
        struct stat owner, file;
        struct dirent *name;
        size_t n = 0;

        cr_assert_not_null(names);
        cr_assert_eq(stat(at->directory, &owner), 0);
        while ((name = readdir(names))) {
                if (name->d_name[0] == '.')
                        continue;
                cr_assert_eq(fstatat(dirfd(names), name->d_name, &file, 0), 0);
                cr_expect(file.st_uid == owner.st_uid && file.st_gid == owner.st_gid, "%s: %u:%u",
                          name->d_name, file.st_uid, file.st_gid);
                n++;
        }
        closedir(names);
        return n;
}

Test(storage_owner, files_belong_to_the_owner_of_the_directory) {
        cr_assert_eq(disk_open(&disk), 0);
        disk_put(&disk, "key", "value");
        COMMIT(&disk);
        cr_expect_eq(check_owner(&disk), 5, "database, log, index, lock, watermark");
        disk_close(&disk);
        cr_expect_eq(check_owner(&disk), 3);
}

Test(storage_owner, files_beside_a_backup_belong_to_the_owner_of_the_directory) {
        struct storage_census census;

        cr_assert_eq(disk_open(&disk), 0);
        disk_close(&disk);
        disk_unlink(&disk, "lock");
        disk_unlink(&disk, "acknowledged");
        cr_expect_eq(storage_sqlite_check(disk.directory, &census), 0);
        cr_expect_eq(check_owner(&disk), 2);
}

Test(storage_owner, a_restored_database_belongs_to_the_owner_of_the_directory) {
        struct storage_census census;
        struct disk source;
        char backup[128];

        disk_init(&source);
        snprintf(backup, sizeof(backup), "%s/backup.db", source.directory);
        cr_assert_eq(disk_open(&source), 0);
        cr_assert_eq(storage_sqlite_backup(source.directory, backup, &census), 0);
        cr_expect_eq(storage_sqlite_restore(backup, disk.directory, &census), 0);
        cr_expect_eq(check_owner(&disk), 2, "database and lock");
        disk_deinit(&source);
}

/* Otherwise a user with write access to the directory could make root write to another file. */
Test(storage_owner, symbolic_links_are_not_followed) {
        static const struct {
                const char *name;
                int expected;
        } cases[] = { { "lock", -ELOOP }, { "acknowledged", 0 } };

        for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
                char target[128], link[128];
                struct disk linked;
                uint8_t *bytes;
                size_t length;

                disk_write(&disk, "target", "untouched", strlen("untouched"));
                disk_init(&linked);
                cr_assert_eq(disk_open(&linked), 0);
                disk_close(&linked);
                disk_unlink(&linked, cases[i].name);
                snprintf(target, sizeof(target), "%s/target", disk.directory);
                snprintf(link, sizeof(link), "%s/%s", linked.directory, cases[i].name);
                cr_assert_eq(symlink(target, link), 0);

                cr_expect_eq(disk_open(&linked), cases[i].expected, "%s", cases[i].name);
                length = disk_read(&disk, "target", &bytes);
                cr_expect(length == strlen("untouched") && memcmp(bytes, "untouched", length) == 0, "%s",
                          cases[i].name);
                free(bytes);
                disk_deinit(&linked);
        }
}
