/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/engine.h"

/* How registrations end. Internal to core. */

/* Carries out one of the events by which clients leave. */
void departure_step(struct engine *engine, const struct event *event, struct effects *effects);

/* One registration, or all of one client's. is_final: its connection is no more. */
void departure_end(struct engine *engine, struct registration *registration, bool is_final,
                   struct effects *effects);
void departure_end_client(struct engine *engine, struct slice client, struct effects *effects);
