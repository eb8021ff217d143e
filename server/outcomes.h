/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "core/outcome.h"
#include "core/request.h"

/*
 * Whether a request with this verb can have this outcome; verb: N_VERBS where it is not known. A fault that a test has
 * ordered can give any verb's request a quota's or a storage's error.
 */
bool outcome_is_possible(enum verb verb, enum outcome outcome);
