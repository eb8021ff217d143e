/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * --explain CLIENT USER VERB KEY: prints which rule decides, of SCAN all that may let keys be listed. Returns the exit code: 0 granted, 1 denied, 2 no such verb.
 */
int explain(const struct config *config);
