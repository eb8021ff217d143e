/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/internal.h"

/*
 * A new policy ends the registrations that it does not grant: some in each step, so that many of them hold up nothing. Who
 * watches a key that changes meanwhile is looked at before anybody is told. Internal to core.
 */

/* Begins, with the first step. */
void revocation_begin(struct engine *engine, struct effects *effects);

/* One more step, if there is anything left. */
void revocation_go_on(struct engine *engine, struct effects *effects);

/* The registrations of a key, of those who may be told of it: watch_of_key(). */
struct registration *revocation_watchers(struct engine *engine, uint64_t hash, struct slice key,
                                         struct effects *effects);
