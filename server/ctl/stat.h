/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/* What needs no broker but the store's own pages: stat, and top, which goes on until it is told to end. */
enum exit_code stat_run(const struct options *options);
enum exit_code top_run(const struct options *options);
