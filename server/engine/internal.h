/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/* The engine's fields. Internal to this folder and its tests. */

struct engine {
        struct engine_config config;
        struct clock clock;
        struct store store;
        struct watch watch;
        struct dedup dedup;
        uint64_t n_disconnects;    /* events that ended registrations, since the first start */
        bool is_revoking;          /* registrations remain to be checked against a new policy */
        uint32_t n_shards_revoked; /* shards of the registrations that have been checked */

        /* Restored registrations of one client belong to several connections: the end of a connection was not stored. */
        bool has_former_connections;

        /* n_disconnects at the last event that ended registrations of connections that may still be open. */
        uint64_t unlisted_at;
};
