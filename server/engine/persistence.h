/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * The persistence policy: which keys storage keeps. It decides which keys a restart loses, and so which clients must
 * register again after it.
 */

/* Identifies the policy of this configuration. Never PERSISTENCE_UNKNOWN. */
uint64_t persistence_digest(const struct engine_config *config);

/* Whether storage keeps this key whatever its SET asks for. */
bool persistence_keeps(const struct engine_config *config, struct slice key);

/*
 * Whether a restart may have lost this key. before: the digest that was stored with the last commit before the
 * restart; config: the present policy.
 */
bool persistence_may_have_lost(const struct engine_config *config, uint64_t before, struct slice key);

/* Whether the connection watches such a key. Out of memory it is assumed. */
bool persistence_lost_watched_key(const struct engine *engine, uint64_t before, uint64_t connection);
