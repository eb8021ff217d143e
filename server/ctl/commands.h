/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ctl/exit.h"
#include "ctl/options.h"

/* Runs the command that the options name, but for watch: connects, asks, prints. */
enum exit_code commands_run(const struct options *options);
