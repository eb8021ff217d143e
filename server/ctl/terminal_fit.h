/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/*
 * Appends what of the report a terminal of this size has room for, so that its first line, the state, stays in sight.
 * Where there are too few lines, details go first, which are indented, then what stands last; lines are cut at the
 * columns. 0: as many as there are.
 */
void fit_append(struct buf *text, struct slice report, size_t n_lines, size_t n_columns);
