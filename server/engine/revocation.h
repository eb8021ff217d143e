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
void revocation_continue(struct engine *engine, struct effects *effects);

/* End the registrations of this key that the policy does not grant. hash: of the key. Call only while is_revoking. */
void revocation_check_key(struct engine *engine, uint64_t hash, struct slice key, struct effects *effects);
