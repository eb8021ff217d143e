/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/* End registrations of disconnected clients. Internal to this folder. */

/* Process an event that ends registrations: EVENT_CLIENT_DISCONNECTED to EVENT_NOT_DELIVERED. */
void disconnect_step(struct engine *engine, const struct event *event, struct effects *effects);

/* End one registration. is_final: its connection has ended, so an undo does not restore the registration. */
void disconnect_end(struct engine *engine, struct registration *registration, bool is_final,
                    struct effects *effects);

/*
 * Iterate over the rows of registrations that this batch stopped and that an undo would restore. Starts at row *at, and
 * advances it. Returns NULL after the last.
 */
struct row *disconnect_next_stopped(struct effects *effects, size_t *at);

/* End all registrations that the client made over other connections: a client has one connection at a time, so the others
 * have ended, although the broker has not reported it yet. */
void disconnect_end_former(struct engine *engine, struct slice client, uint64_t connection,
                           struct effects *effects);
