/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

struct engine;
struct engine_config;

/*
 * The persistence policy: which keys storage keeps. It decides which keys a restart loses, and so which clients must
 * register again after it.
 */

enum persist {
        PERSIST_ALL,
        PERSIST_NONE,
        PERSIST_CUSTOM, /* keys that match the pattern, and keys whose SET asks for it */
};

/* Digests of persistence policies. */
#define PERSISTENCE_ALL     UINT64_C(0) /* every key is stored: a restart loses none */
#define PERSISTENCE_UNKNOWN UINT64_MAX  /* a restart may lose or change any key */

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
