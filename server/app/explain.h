/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * --explain CLIENT USER VERB KEY: print which rule decides; for SCAN, all rules that may let keys be listed.
 * Returns the exit status: 0 granted, 1 denied, 2 unknown verb.
 */
int explain(const struct config *config);
