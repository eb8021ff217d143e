/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"

/*
 * The tables, for people with the sqlite3 tool too. Keys, values and clients are TEXT where they are UTF-8 without
 * NUL, else BLOB; times are in ms since the epoch, on the scale of timescale.h.
 *
 * Each row has a checksum, as SQLite has none, and meta has the sum of them all: so that a row that is missing, or
 * older than it should be, shows as well as one that is damaged.
 */

#define SCHEMA_VERSION 1

/* In an empty database, within the caller's transaction. Returns SQLite's code. */
int schema_create(sqlite3 *db);

/* Returns 0, -EBADMSG (logged) for tables that are not ours or of a newer version, or as database_errno(). */
int schema_check(sqlite3 *db, const struct directory *directory);
