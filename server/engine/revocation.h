/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/*
 * End registrations that a new policy does not grant. Each step checks at most ENGINE_STEP_CHANGES_MAX
 * registrations, so that a policy change does not delay requests. Until all are checked, the policy also
 * decides about each notification. Internal to this folder.
 */

/* Start checking, and do the first step. */
void revocation_begin(struct engine *engine, struct effects *effects);

/*
 * Check at most *n_changes_left more registrations, if any remain to be checked. Reduces *n_changes_left.
 */
void revocation_continue(struct engine *engine, size_t *n_changes_left, struct effects *effects);

/*
 * An undo restores the registration. If the policy does not grant it, check all registrations
 * again: the next ticks end it.
 */
void revocation_repeat_unless_granted(struct engine *engine, const struct registration *registration);

/* Return whether the client of the registration may be notified: the policy grants the registration. */
bool revocation_lets_notify(const struct engine *engine, const struct registration *registration);
