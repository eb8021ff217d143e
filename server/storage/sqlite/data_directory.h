/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * The data directory: the names of its files, and its lock. The lock is held while the directory is open.
 * The kernel releases it when the process ends.
 */

#define DIRECTORY_DATABASE         "statestored.db"
#define DIRECTORY_NEW_DATABASE     "statestored.db.new" /* being created; ignored otherwise */
#define DIRECTORY_LOCK             "lock"         /* contains the process id of the owner, for messages */
#define DIRECTORY_COMMIT_WATERMARK "acknowledged" /* see commit_watermark.h */

struct directory {
        int fd;
        int lock_fd;
        char *path;
        char *database; /* path/DIRECTORY_DATABASE */
};

/* Open an existing directory, without locking it. Returns 0, -ENOMEM, or the error of opening it. */
int directory_open(struct directory *directory, const char *path);

/*
 * Open the directory; create it with mode 0700, durably, if it does not exist. Returns as directory_open().
 */
int directory_make(struct directory *directory, const char *path);

/* Close the directory and release the lock. Accepts a structure of zeros, or one that is closed. */
void directory_close(struct directory *directory);

enum lock_wait {
        LOCK_NO_WAIT,
        LOCK_WAIT, /* wait up to 1 s: a killed predecessor holds the lock until it has exited */
};

/*
 * Lock the directory. Returns 0; -EBUSY if another process holds the lock, with its process id in
 * *ret_holder, or 0 if unknown; or another -errno.
 */
int directory_lock(struct directory *directory, enum lock_wait wait, pid_t *ret_holder);

/*
 * Open a file of the directory for reading and writing; create it if it does not exist. A file that root
 * creates gets the owner of the directory, as with files of SQLite: otherwise the store could not open it
 * after "sudo statestorectl". Symbolic links are not followed: a user who may write to the directory must
 * not choose which file root opens. Returns a descriptor or -errno.
 */
int directory_open_file(int directory_fd, const char *name);

/* False if the file does not exist or is empty. */
bool directory_has(const struct directory *directory, const char *name);

/* Sync the directory, so that created and renamed files are durable. Returns 0 or -errno. */
int directory_sync(const struct directory *directory);
