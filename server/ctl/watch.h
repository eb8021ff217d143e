/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/* Prints what happens to the options' keys until SIGINT or SIGTERM comes or nobody reads stdout any more. */
enum exit_code watch_run(const struct options *options);
