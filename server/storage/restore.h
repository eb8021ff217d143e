/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "storage/storage.h"

/*
 * Create an engine and load the storage into it. The digest key comes from the storage. The node id comes
 * from config or, if config has none, from the storage. The caller owns *ret_engine.
 *
 * Returns 0, -ENOMEM, -EBADMSG (logged) if config and the storage have different node ids, or the error of
 * storage_load().
 */
int restore_engine(struct engine **ret_engine, struct storage_header *ret_header, struct storage *storage,
                   const struct engine_config *config, struct now now);
