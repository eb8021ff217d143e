/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/* How the last process that had the database open has ended. */
enum storage_last_end {
        STORAGE_END_CLEAN,   /* it closed the database */
        STORAGE_END_UNCLEAN, /* it was killed, or could not write all of the log into the database */
        STORAGE_END_NONE,    /* the database is new */
        N_STORAGE_LAST_ENDS,
};

/*
 * Open the SQLite database DIRECTORY/statestored.db. Creates the directory and the database if they
 * do not exist. Locks the directory against other processes. If no file can be created in the
 * directory, the database is opened for reading: storage_lead() then fails. The cause of an error
 * other than -ENOMEM is logged, with the file. Returns:
 *
 *     >= 0        opened: an enum storage_last_end
 *     -EBUSY      another process has locked the directory or the database
 *     -EBADMSG    the database is damaged, is not one of statestored, or has another form
 *     -ENOMEM     out of memory
 *     other       the error of opening the directory or the database
 */
int storage_sqlite_open(struct storage **ret_storage, const char *directory);
