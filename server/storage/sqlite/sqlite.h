/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * Like storage_sqlite_open() of storage/storage.h, with the number of log frames after which the log is checkpointed. For
 * tests, which pass a small number.
 */
int storage_sqlite_open_with(struct storage **ret_storage, const char *directory, int checkpoint_frames);
