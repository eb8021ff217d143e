/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/request.h"
#include "proto/invocation.h"

/* What metrics and log lines call what is asked, and what is wrong with it; for outcomes see storage/outcome_names.h. */

/* N_VERBS: what was asked is not known. */
const char *verb_name(enum verb verb);
const char *fault_name(enum envelope_fault fault);
