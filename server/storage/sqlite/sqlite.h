/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * As storage_sqlite_open(), which knows a good number: the log is carried over into the database when it has grown by
 * so many pages. Tests want fewer.
 */
int sqlite_storage_open(struct storage **ret_storage, const char *directory, int checkpoint_frames);
