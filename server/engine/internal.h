/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/* The engine's fields. Internal to this folder and its tests. */

struct engine {
        struct engine_config config;
        struct clock clock;
        struct keyspace keyspace;
        struct registrations registrations;
        struct dedup dedup;
        bool is_notifying_lost; /* watched keys remain to be checked: see persistence_notify_lost() */
        bool is_revoking;       /* registrations remain to be checked, from registrations.check on */
        bool has_restored_registrations; /* as engine_has_restored_registrations() */
};

/* Return whether the present step has added ENGINE_STEP_BYTES_MAX. */
static inline bool effects_step_is_full(const struct effects *effects) {
        return effects->n_bytes - effects->n_bytes_before_step >= ENGINE_STEP_BYTES_MAX;
}
