/* SPDX-License-Identifier: Apache-2.0 */

/* Access to the files of the data directory without the storage. */

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "unit/storage/disk.h"

static int open_file(const struct disk *disk, const char *name, int flags) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", disk->directory, name);
        return open(path, flags | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

size_t disk_read(const struct disk *disk, const char *name, uint8_t **ret_bytes) {
        int fd = open_file(disk, name, O_RDONLY);
        struct stat status;

        *ret_bytes = NULL;
        if (fd < 0)
                return 0;

        cr_assert_eq(fstat(fd, &status), 0);
        *ret_bytes = malloc((size_t)status.st_size + 1);
        cr_assert_not_null(*ret_bytes);
        cr_assert_eq(pread(fd, *ret_bytes, (size_t)status.st_size, 0), status.st_size);
        close(fd);
        return (size_t)status.st_size;
}

void disk_write(const struct disk *disk, const char *name, const void *bytes, size_t length) {
        int fd = open_file(disk, name, O_WRONLY | O_CREAT | O_TRUNC);

        cr_assert(fd >= 0);
        cr_assert_eq(write(fd, bytes, length), (ssize_t)length);
        close(fd);
}

bool disk_has(const struct disk *disk, const char *name) {
        int fd = open_file(disk, name, O_RDONLY);

        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

void disk_unlink(const struct disk *disk, const char *name) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", disk->directory, name);
        cr_assert_eq(unlink(path), 0);
}

uint64_t disk_fingerprint(const struct disk *disk) {
        DIR *names = opendir(disk->directory);
        struct dirent *name;
        uint64_t sum = 0;

        cr_assert_not_null(names);
        while ((name = readdir(names))) {
                uint8_t *bytes;
                size_t length;

                if (name->d_name[0] == '.' || strcmp(name->d_name, "lock") == 0)
                        continue;
                if (strcmp(name->d_name, "statestored.db-shm") == 0)
                        continue;
                length = disk_read(disk, name->d_name, &bytes);
                if (length > 0)
                        sum += XXH3_64bits_withSeed(bytes, length,
                                                    XXH3_64bits(name->d_name, strlen(name->d_name)));
                free(bytes);
        }
        closedir(names);
        return sum;
}

void disk_sql(const struct disk *disk, const char *sql) {
        char path[128];
        sqlite3 *db;

        snprintf(path, sizeof(path), "%s/statestored.db", disk->directory);
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
        cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}
