/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The data directory: the names of its files, and its lock. directory_lock() takes the lock,
 * directory_close() releases it. The kernel also releases it when the process ends.
 */

#define DIRECTORY_DATABASE         "statestored.db"
#define DIRECTORY_LOCK             "lock"         /* an empty file, for flock() */
#define DIRECTORY_COMMIT_WATERMARK "acknowledged" /* number of the last acknowledged commit */

/*
 * For openat(). O_NONBLOCK: if the name is that of a pipe, openat() does not block, and the pread()
 * after it fails.
 */
#define DIRECTORY_READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC)

struct directory {
        int fd; /* -1: `database` is a file of its own, without a data directory */
        int lock_fd;
        int write_error; /* 0: files can be created in the directory; else -EROFS or -EACCES */
        char *path;
        char *database; /* path/DIRECTORY_DATABASE */
};

/*
 * Open an existing directory, without locking it. Returns 0, -ENOMEM, or the error of opening it.
 */
int directory_open(struct directory *directory, const char *path);

/*
 * Open the directory. If it does not exist, create it with mode 0700 and sync its parent. Returns
 * as directory_open().
 */
int directory_open_or_create(struct directory *directory, const char *path);

/* Close the directory and release the lock. Accepts a structure of zeros, or one that is closed. */
void directory_close(struct directory *directory);

enum lock_wait {
        LOCK_NO_WAIT,
        LOCK_WAIT, /* wait up to 1 s: a killed predecessor holds the lock until it has exited */
};

/*
 * Lock the directory. If no file can be created in it and it has no lock file, it stays unlocked.
 * Returns 0, -EBUSY if another process holds the lock, or another -errno.
 */
int directory_lock(struct directory *directory, enum lock_wait wait);

/*
 * Open a file of the directory for reading and writing; create it if it does not exist. Returns a
 * descriptor or -errno.
 *
 * If root creates the file, the owner of the directory becomes its owner, so that the store can
 * open the file after "sudo statestorectl". SQLite does the same. Symbolic links are not followed,
 * so that a user with write access to the directory cannot choose the file that root opens.
 */
int directory_open_file(int directory_fd, const char *name);

/*
 * Return what to do about an error (-errno) of the directory or a file in it, to append to a
 * message: "; free space ...". "" if the error is not one that the user can end.
 */
const char *directory_remedy(int error);

/* Return true if the file exists and is not empty. */
bool directory_has(const struct directory *directory, const char *name);

/*
 * Sync a file or a directory. After the sync of a directory, the names of created and renamed files
 * are durable. As with openat(2), directory_fd is ignored if the name begins with '/'. Returns 0 or
 * -errno.
 */
int directory_sync_file(int directory_fd, const char *name);

/*
 * Remove a database and the files that SQLite creates beside it. Errors are ignored. name: as for
 * directory_sync_file().
 */
void directory_remove_database(int directory_fd, const char *name);
