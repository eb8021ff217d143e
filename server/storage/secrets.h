/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * Draw the secrets that live as long as the process: the keys of the engine's hash tables and of SCAN's tokens. Returns 0,
 * or -EIO where the system has no randomness.
 */
int secrets_draw(struct engine_config *config);
