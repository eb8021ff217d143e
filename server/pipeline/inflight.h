/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/registrations.h"

/*
 * Maps the message id of a notification to its registration until the broker acknowledges the
 * message. Without the plugin, the PUBACK is the only sign whether the client is subscribed. All
 * zeros is an empty map.
 */
struct inflight {
        struct registration **registrations; /* by message id; allocated by the first inflight_add() */
};

void inflight_deinit(struct inflight *inflight);

/*
 * Add a notification; takes a reference. If memory is short, nothing is added, and the PUBACK is
 * ignored.
 */
void inflight_add(struct inflight *inflight, struct registration *registration, uint16_t id);

/*
 * Remove and return the registration of this message id; the caller owns the reference. NULL: the
 * id is not in the map.
 */
struct registration *inflight_take(struct inflight *inflight, uint16_t id);
