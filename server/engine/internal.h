/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/* The engine's fields. Internal to core, and for tests that look inside. */

struct engine {
        struct engine_config config;
        struct clock clock;
        struct store store;
        struct watch watch;
        struct dedup dedup;
        uint64_t n_disconnects;    /* clients that have left, all told */
        bool is_revoking;          /* a new policy has not been held against all registrations yet: */
        uint32_t n_shards_revoked; /* against those of so many shards */
        bool has_leftovers; /* registrations of one client over several connections were restored: one had ended unsaid */
        uint64_t unlisted_at; /* n_disconnects when registrations ended whose connections may live */
};
