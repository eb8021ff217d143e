/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/* End registrations of disconnected clients. Internal to this folder. */

/* Process EVENT_CLIENT_DISCONNECTED. */
void disconnect_client(struct engine *engine, struct slice client, struct effects *effects);

/* Process EVENT_CONNECTION_CLOSED. */
void disconnect_connection(struct engine *engine, uint64_t connection, struct effects *effects);

/* Process EVENT_CONNECTIONS_RETAINED. Returns an engine_step_result. */
int disconnect_others(struct engine *engine, const struct event *event, struct effects *effects);

/* Process EVENT_REACHED. */
void disconnect_reached(struct engine *engine, struct registration *registration);

/* Process EVENT_NOT_REACHED. */
void disconnect_not_reached(struct engine *engine, const struct event *event, struct now now,
                            struct effects *effects);

/*
 * End registrations of unreachable clients that have been idle for registration_timeout_ns; at most
 * *n_changes_left, which is reduced. Call again on the next tick.
 */
void disconnect_end_idle(struct engine *engine, struct now now, size_t *n_changes_left,
                         struct effects *effects);

/*
 * The time at which the next unreachable client times out, in monotonic nanoseconds; INT64_MAX if
 * there is none.
 */
int64_t disconnect_idle_deadline(const struct engine *engine);

/*
 * Remove at most *n_changes_left registrations of ended clients, and reduce *n_changes_left: see
 * registrations_end_client().
 */
void disconnect_continue(struct engine *engine, size_t *n_changes_left, struct effects *effects);

/* End one registration. */
void disconnect_end_registration(struct engine *engine, struct registration *registration,
                                 struct effects *effects);

/*
 * End all registrations that the client made over other connections. A client has one connection at
 * a time, so its other connections have ended, even if the plugin has not reported this yet.
 * n_changes_left: as for disconnect_continue().
 */
void disconnect_end_former(struct engine *engine, struct slice client, uint64_t connection,
                           size_t *n_changes_left, struct effects *effects);
