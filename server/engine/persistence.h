/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

struct engine;
struct engine_config;

/*
 * The persistence policy (--persist; not the access policy): which keys the storage has. A restart loses all other keys, and
 * notifies no client of the loss. So the clients that watch a lost key must register again after the restart.
 */

enum persist {
        PERSIST_ALL,
        PERSIST_NONE,
        PERSIST_CUSTOM, /* keys that match the pattern, and keys whose SET requests it */
};

/* Special values of a stored digest of the persistence policy. */
#define PERSISTENCE_ALL     UINT64_C(0) /* every key is stored: a restart loses none */
#define PERSISTENCE_UNKNOWN UINT64_MAX  /* any key may be lost, or changed by an import or a seed */

/* Return the digest of the persistence policy of this configuration. Never PERSISTENCE_UNKNOWN. */
uint64_t persistence_digest(const struct engine_config *config);

/* Return whether a SET of this key is stored. is_requested: the SET requests it. */
bool persistence_stores(const struct engine_config *config, struct slice key, bool is_requested);

/*
 * Return whether a restart may have lost this key. stored_digest: the persistence_digest() that was stored with the last commit
 * before the restart. config: has the present persistence policy.
 */
bool persistence_may_have_lost(const struct engine_config *config, uint64_t stored_digest, struct slice key);

/* Return whether the connection has a registration for a key that a restart may have lost; also true if out of memory. */
bool persistence_lost_watched_key(const struct engine *engine, uint64_t stored_digest, uint64_t connection);
