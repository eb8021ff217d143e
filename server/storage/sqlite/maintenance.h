/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What is done with a data directory from outside: not by the process that has it open, for SQLite's locks would go
 * with the first file that is closed here. Text for a person has been logged where something fails.
 */

struct storage_census {
        uint64_t n_entries;
        uint64_t n_registrations;
        uint64_t n_answers; /* that are still remembered */
};

/* That there is a database in it, for those that must not make one. Returns 0, -ENOENT, or what failed. */
int storage_sqlite_find(const char *directory);

/*
 * Reads everything, and believes nothing. Changes nothing. Returns 0; -EBADMSG for what a store would refuse, or
 * stumble over later; -EBUSY where one is running; -ENOENT where there is none; or what reading failed with.
 */
int storage_sqlite_check(const char *directory, struct storage_census *ret_census);

/*
 * Writes a copy of everything to a file that is not there yet, as it is at one moment; the store may be running, and
 * is not held up. The copy has been read back, and is safe once this returns. In a directory of its own, under the
 * name of the database, it is one to start from: with an instance id of its own, for what was done after it is not
 * in it. Returns 0, -EEXIST, -EBADMSG, -ENOENT, or what failed; then the file is not there.
 */
int storage_sqlite_backup(const char *directory, const char *file);
