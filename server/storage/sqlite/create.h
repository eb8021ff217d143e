/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/sqlite/data_directory.h"

/*
 * Makes the database in a directory that has none. It is there whole or not at all, and safe. Returns 0, or what
 * failed (logged).
 */
int sqlite_create(const struct directory *directory);
