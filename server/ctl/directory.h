/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/* What needs no broker but a data directory: export and import with --data-dir, check, backup. */
enum exit_code directory_run(const struct options *options);
