/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/sqlite/data_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/system_clock.h"

int directory_open(struct directory *directory, const char *path) {
        struct directory opened = { .fd = -1, .lock_fd = -1 };
        int r = 0;

        opened.path = strdup(path);
        if (!opened.path || asprintf(&opened.database, "%s/%s", path, DIRECTORY_DATABASE) < 0)
                r = -ENOMEM;
        if (r == 0)
                opened.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && opened.fd < 0)
                r = -errno;
        if (r < 0) {
                directory_close(&opened);
                return r;
        }
        if (faccessat(opened.fd, ".", W_OK, 0) < 0)
                opened.write_error = -errno;

        *directory = opened;
        return 0;
}

void directory_close(struct directory *directory) {
        if (directory->path && directory->lock_fd >= 0)
                close(directory->lock_fd);
        if (directory->path && directory->fd >= 0)
                close(directory->fd);
        free(directory->path);
        free(directory->database);
        *directory = (struct directory){ .fd = -1, .lock_fd = -1 };
}

int directory_sync_file(int directory_fd, const char *name) {
        int fd, r;

        fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        r = fsync(fd) < 0 ? -errno : 0;
        close(fd);
        return r;
}

void directory_remove_database(int directory_fd, const char *name) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
        char path[PATH_MAX];

        for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++)
                if (snprintf(path, sizeof(path), "%s%s", name, suffixes[i]) < (int)sizeof(path))
                        unlinkat(directory_fd, path, 0);
}

int directory_open_or_create(struct directory *directory, const char *path) {
        bool is_new = mkdir(path, S_IRWXU) == 0;
        int r;

        if (!is_new && errno != EEXIST)
                return -errno;

        r = directory_open(directory, path);
        if (r < 0 || !is_new)
                return r;

        /* Sync the name of the new directory, unless its parent is not readable. */
        r = directory_sync_file(directory->fd, "..");
        if (r < 0 && r != -EACCES) {
                directory_close(directory);
                return r;
        }
        return 0;
}

/*
 * Make the owner of the directory the owner of the file. Ignore errors: some network file systems
 * do not allow it.
 */
static void give_to_owner(int directory_fd, int fd) {
        struct stat directory, file;

        if (geteuid() != 0 || fstat(directory_fd, &directory) < 0 || fstat(fd, &file) < 0)
                return;
        if (file.st_uid == 0 && file.st_nlink == 1 && fchown(fd, directory.st_uid, directory.st_gid) < 0)
                errno = 0;
}

int directory_open_file(int directory_fd, const char *name) {
        int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);

        if (fd < 0)
                return -errno;
        give_to_owner(directory_fd, fd);
        return fd;
}

#define LOCK_TRIES    100
#define LOCK_PAUSE_MS 10

static int take_lock(int fd, enum lock_wait wait) {
        for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                if (i == LOCK_TRIES || wait == LOCK_NO_WAIT)
                        return -EBUSY;
                system_clock_sleep_ms(LOCK_PAUSE_MS);
        }
        return 0;
}

/* Open the lock file; for reading if the directory cannot be written: flock() needs no more. */
static int open_lock(const struct directory *directory) {
        int fd;

        if (directory->write_error == 0)
                return directory_open_file(directory->fd, DIRECTORY_LOCK);
        fd = openat(directory->fd, DIRECTORY_LOCK, DIRECTORY_READ_FLAGS | O_NOFOLLOW);
        return fd < 0 ? -errno : fd;
}

int directory_lock(struct directory *directory, enum lock_wait wait) {
        int fd, r;

        fd = open_lock(directory);
        if (fd == -ENOENT && directory->write_error < 0)
                return 0;
        if (fd < 0)
                return fd;

        r = take_lock(fd, wait);
        if (r < 0) {
                close(fd);
                return r;
        }
        directory->lock_fd = fd;
        return 0;
}

const char *directory_remedy(int error) {
        switch (-error) {
        case ENOSPC:
        case EDQUOT:
                return "; free space on this disk, or choose another directory";
        case EACCES:
        case EPERM:
                return "; give the user account of this process access, or choose another directory";
        case EROFS:
                return "; choose a directory on a writable file system";
        case ENOENT:
        case ENOTDIR:
                return "; check the path";
        case EEXIST:
                return "; choose another name";
        case EBUSY:
                return "; end the process that has locked the database, such as a sqlite3 tool";
        case EIO:
                return "; see the log of the kernel for errors of this disk";
        default:
                return "";
        }
}

bool directory_has(const struct directory *directory, const char *name) {
        struct stat status;

        return fstatat(directory->fd, name, &status, 0) == 0 && status.st_size > 0;
}
