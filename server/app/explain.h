/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * --explain CLIENT USER VERB KEY: print the policy rule that grants this request, or that no rule
 * grants it. For SCAN: whether it lists KEY. Returns the exit status:
 * 0 if the request is granted, 1 if it is denied, 2 if the verb is unknown.
 */
int explain(const struct config *config);
