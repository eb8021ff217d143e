/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/* How registrations end. Internal to core. */

/* Carries out one of the events by which clients leave. */
void disconnect_step(struct engine *engine, const struct event *event, struct effects *effects);

/* One registration. is_final: its connection is no more. */
void disconnect_end(struct engine *engine, struct registration *registration, bool is_final,
                    struct effects *effects);

/*
 * The next registration that this batch has stopped, and that comes back if it fails, from row *at on; NULL: none.
 */
struct row *disconnect_next_stopped(struct effects *effects, size_t *at);

/* All that the client made over other connections than this one: they are no more, though we were not told yet. */
void disconnect_end_former(struct engine *engine, struct slice client, uint64_t connection,
                           struct effects *effects);
