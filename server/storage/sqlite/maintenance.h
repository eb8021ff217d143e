/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * Operations on the data directory of a store, for other processes. The process that has the
 * directory open must not call them: when a process closes a file, the kernel drops all POSIX locks
 * of that process on the file, also those of SQLite. The cause of an error is logged.
 */

/* Numbers of stored rows. */
struct storage_census {
        uint64_t n_entries;
        uint64_t n_registrations;
        uint64_t n_replies;       /* not yet expired */
        uint64_t n_notifications; /* pending */
};

/*
 * Check that the directory contains a database, without creating one. Returns 0, -ENOENT, or
 * another -errno.
 */
int storage_sqlite_find(const char *directory);

/*
 * Read and verify everything in a data directory, or in the file of a backup. Changes nothing.
 * Returns 0; -EBADMSG if the data is damaged; -EBUSY if a store is running, or if another process
 * has locked the database; -ENOENT if there is no database; or the error of reading.
 */
int storage_sqlite_check(const char *path, struct storage_census *ret_census);

/*
 * Write a consistent copy to a file that does not exist yet, verify the copy, and sync it. The
 * store may be running, and is not blocked. The copy gets a new instance id, because it lacks
 * later commits. Returns 0, -EEXIST, -EBADMSG, -ENOENT, or another -errno. On error, an incomplete
 * copy is removed.
 */
int storage_sqlite_backup(const char *directory, const char *file, struct storage_census *ret_census);

/*
 * Copy the file of a backup into a data directory, verify the copy, and sync it. If the directory
 * does not exist, create it. The owner of the directory owns the copy. Returns 0; -EBUSY if a store
 * uses the directory; -ENOTEMPTY if it contains anything but a lock file; -EBADMSG, -ENOENT, or
 * another -errno. On error, an incomplete copy is removed.
 */
int storage_sqlite_restore(const char *file, const char *directory, struct storage_census *ret_census);
