/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"
#include "storage/storage.h"

/* The stored data that does not belong to the engine: the header and the pending notifications. */
struct restored {
        struct storage_header header;
        /* The array and its items are owned. In ascending order of sequence. */
        struct pending_notification *notifications;
        size_t n_notifications, notifications_capacity;
};

/* Accepts a structure of zeros. */
void restored_deinit(struct restored *restored);

/*
 * Create an engine and load the storage into it. The digest key comes from the storage. The node id
 * comes from config; if config has none, from the storage; if the storage is empty, it is
 * NODE_ID_DEFAULT. The caller owns *ret_engine and *ret_restored; it frees *ret_restored with
 * restored_deinit().
 *
 * Returns 0, -ENOMEM, -EBADMSG (logged) if config and the storage have different node ids, or the
 * error of storage_load().
 */
int storage_load_engine(struct engine **ret_engine, struct restored *ret_restored, struct storage *storage,
                        const struct engine_config *config, struct now now);
