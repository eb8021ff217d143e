/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/sqlite/data_directory.h"

/*
 * Create the database in a directory that has none: atomically and durably. Returns 0 or -errno. The cause of an error other
 * than -ENOMEM is logged.
 */
int sqlite_create(const struct directory *directory);
