/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sqlite3.h>

#include "storage/sqlite/data_directory.h"
#include "storage/sqlite/header.h"
#include "storage/storage.h"

/*
 * Pass everything to the sink, and check for damage: load.c lists the checks. Each change set has
 * one row. Changes nothing. Returns as storage_load(). After an error the caller must discard what
 * the sink received.
 */
int sqlite_load(sqlite3 *db, const struct directory *directory, const struct storage_sink *sink,
                struct database_header *ret_header);
