/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engine/engine.h"

/*
 * Draw the keys of the engine's hash tables and of SCAN tokens. They live as long as the process. Returns 0,
 * or -EIO if the system provides no randomness.
 */
int secrets_draw(struct engine_config *config);
