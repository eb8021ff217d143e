/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "storage/storage.h"

/*
 * Makes an engine of what the storage holds. The digest key is the storage's, and so is the node id where config has none.
 * Returns 0, -ENOMEM, -EBADMSG (logged) where the two node ids differ, or what storage_load() failed with; the caller
 * owns *ret_engine.
 */
int restore_engine(struct engine **ret_engine, struct storage_header *ret_header, struct storage *storage,
                   const struct engine_config *config, struct now now);
