/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/bytes.h"
#include "core/outcome.h"

/*
 * Outcomes as they are kept: by a name that stays when the enum is sorted anew, and can be read. A name is never
 * given another meaning, and one that is not used any more is never given again.
 */
const char *outcome_name(enum outcome outcome);

/* Returns 0, or -EINVAL for what is no outcome's name. */
int outcome_from_name(struct slice name, enum outcome *ret_outcome);
