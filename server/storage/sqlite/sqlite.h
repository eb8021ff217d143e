/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/*
 * As storage_sqlite_open(). checkpoint_frames: number of log frames after which the log is checkpointed.
 * Tests pass a small number.
 */
int sqlite_storage_open(struct storage **ret_storage, const char *directory, int checkpoint_frames);
