/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * The data directory: the names in it, and who has it. The lock is held as long as the directory is open, and goes
 * with the process, however that ends.
 */

#define DIRECTORY_DATABASE         "statestored.db"
#define DIRECTORY_NEW_DATABASE     "statestored.db.new" /* one that is being made; means nothing */
#define DIRECTORY_LOCK             "lock"         /* its content is the holder's process id, for people */
#define DIRECTORY_COMMIT_WATERMARK "acknowledged" /* see acknowledged.h */

struct directory {
        int fd;
        int lock_fd;
        char *path;
        char *database; /* path/DIRECTORY_DATABASE */
};

/* Opens one that is there, without its lock. Returns 0, -ENOMEM, or what opening it failed with. */
int directory_open(struct directory *directory, const char *path);

/* Makes it first where it is not there: for us alone (mode 0700), and safe once it returns. */
int directory_make(struct directory *directory, const char *path);

/* Accepts one that is all zeros or closed. Gives back the lock. */
void directory_close(struct directory *directory);

enum lock_wait {
        WAIT_NOT,
        WAIT_FOR_THE_KILLED, /* a second, in which the kernel ends a process that this one takes the place of */
};

/*
 * Takes the lock. Returns 0; -EBUSY where another process has it: *ret_holder is that process, or 0 where it does
 * not say; or what failed.
 */
int directory_lock(struct directory *directory, enum lock_wait patience, pid_t *ret_holder);

/*
 * Opens a file in it for reading and writing, and makes it first where it is not there. What root makes in somebody's
 * directory is that owner's, as with SQLite's own files: else "sudo statestorectl" would shut the store out. A
 * symbolic link is not followed: whoever may write there must not choose what root opens. Returns a descriptor or
 * -errno.
 */
int directory_open_file(int directory_fd, const char *name);

/* False for what is not there, or is empty. */
bool directory_has(const struct directory *directory, const char *name);

/* Makes safe which names are in it. Returns 0 or -errno. */
int directory_sync(const struct directory *directory);
