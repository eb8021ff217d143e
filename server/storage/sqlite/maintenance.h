/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Operations on the data directory of a store, for other processes. The process that has the directory open
 * must not call them: closing a file here would drop the POSIX locks of SQLite. The cause of an error is
 * logged.
 */

struct storage_census {
        uint64_t n_entries;
        uint64_t n_registrations;
        uint64_t n_answers; /* not yet expired */
};

/*
 * Check that the directory contains a database, without creating one. Returns 0, -ENOENT, or another -errno.
 */
int storage_sqlite_find(const char *directory);

/*
 * Read and verify everything. Changes nothing. Returns 0; -EBADMSG if the data is damaged; -EBUSY if a store
 * is running; -ENOENT if there is no database; or the error of reading.
 */
int storage_sqlite_check(const char *directory, struct storage_census *ret_census);

/*
 * Write a consistent copy to a file that does not exist yet. The store may be running, and is not blocked.
 * The copy is verified and durable when the function returns. A store can start from it: put it into an
 * empty directory under the name of the database. The copy gets an instance id of its own, because it lacks
 * later commits. Returns 0, -EEXIST, -EBADMSG, -ENOENT, or another -errno; after an error the file does not
 * exist.
 */
int storage_sqlite_backup(const char *directory, const char *file);
