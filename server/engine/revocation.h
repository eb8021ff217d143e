/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/*
 * End registrations that a new policy does not grant. Each step checks about ENGINE_REVOKED_MAX registrations, so that a
 * policy change does not delay requests. Until all are checked, the registrations of a key are checked before clients are
 * notified of it. Internal to this folder.
 */

/* Start checking, and do the first step. */
void revocation_begin(struct engine *engine, struct effects *effects);

/* Do one more step, if registrations remain to be checked. */
void revocation_go_on(struct engine *engine, struct effects *effects);

/* The registrations of a key that the policy grants, as watch_of_key() returns them. Ends the others. */
struct registration *revocation_watchers(struct engine *engine, uint64_t hash, struct slice key,
                                         struct effects *effects);
